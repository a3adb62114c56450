/* A C program that links the runtime; it expects clear errors, as app.cpp does. */
#include <burin/runtime.h>
#include <stdio.h>
#include <string.h>

static int expect_error(const char* call, burin_status status, burin_status expected, const char* part) {
  if (status == expected && strstr(burin_last_error(), part) != NULL) return 1;
  fprintf(stderr, "app: %s gives %d: %s\n", call, (int)status, burin_last_error());
  return 0;
}

int main(void) {
  burin_device* device = NULL;
  burin_package* package = NULL;
  if (!expect_error("burin_device_open", burin_device_open(0, &device), BURIN_ERROR_DEVICE, "no CUDA driver")) return 1;
  if (!expect_error("burin_package_open", burin_package_open(NULL, "a.burin", &package), BURIN_ERROR_USAGE, "device"))
    return 1;
  printf("a C program runs with burin %s\n", burin_version());
  return 0;
}
