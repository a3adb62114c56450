/* Runs one layer of a burin package on a GPU with a ramp as input, through the C API: prints a checksum.
 *
 *   infer_c MODEL.burin [LAYER [BATCH]]
 */
#include <burin/runtime.h>
#include <stdio.h>
#include <stdlib.h>

/* The usual way in C: on failure, remember the status and go to the clean-up. */
#define TRY(call)                                 \
  do {                                            \
    if ((status = (call)) != BURIN_OK) goto done; \
  } while (0)

/* Channels of an image, those included that fill up the last block. */
static size_t filled(int channels, int together) {
  return ((size_t)channels + (size_t)together - 1) / (size_t)together * (size_t)together;
}

static size_t elements(int batch, int channels, int together, int height, int width) {
  return (size_t)batch * filled(channels, together) * (size_t)height * (size_t)width;
}

/* The channel of an element, in any layout. */
static size_t channel_of(size_t element, int channels, int together, int height, int width) {
  const size_t pixel = element / (size_t)together;
  const size_t block = pixel / ((size_t)height * (size_t)width);
  return block * (size_t)together % filled(channels, together) + element % (size_t)together;
}

static burin_status infer(const char* path, const char* layer, int batch) {
  burin_status status = BURIN_OK;
  const char* problem = NULL; /* ours; NULL: the runtime's */
  burin_device* device = NULL;
  burin_package* package = NULL;
  burin_kernel* kernel = NULL;
  burin_workspace* workspace = NULL;
  struct CUstream_st* stream = NULL;
  void *input = NULL, *output = NULL, *residual = NULL;
  float* values = NULL;
  double sum = 0;

  TRY(burin_device_open(0, &device));
  TRY(burin_package_open(device, path, &package));
  if (layer == NULL) layer = burin_package_layer_name(package, 0);
  TRY(burin_kernel_find(package, layer, batch, &kernel));

  burin_kernel_shape shape;
  TRY(burin_kernel_get_shape(kernel, &shape));
  const size_t inputs = elements(batch, shape.in_channels, shape.in_channels_together, shape.in_height, shape.in_width);
  const size_t outputs =
      elements(batch, shape.out_channels, shape.out_channels_together, shape.out_height, shape.out_width);
  values = calloc(inputs > outputs ? inputs : outputs, sizeof(float));
  if (values == NULL) {
    status = BURIN_ERROR_INTERNAL;
    problem = "out of host memory";
    goto done;
  }

  TRY(burin_memory_alloc(device, inputs * sizeof(float), &input));
  TRY(burin_memory_alloc(device, outputs * sizeof(float), &output));
  if (shape.needs_residual) {
    TRY(burin_memory_alloc(device, outputs * sizeof(float), &residual));
    TRY(burin_copy_to_device(device, residual, values, outputs * sizeof(float)));
  }
  for (size_t i = 0; i < inputs; ++i) values[i] = (float)(i % 17) / 16.0f - 0.5f;
  TRY(burin_copy_to_device(device, input, values, inputs * sizeof(float)));

  TRY(burin_stream_create(device, &stream));
  TRY(burin_workspace_create(device, kernel, batch, &workspace));
  TRY(burin_launch(kernel, stream, input, output, residual, batch, workspace));
  TRY(burin_stream_synchronize(device, stream));

  TRY(burin_copy_to_host(device, values, output, outputs * sizeof(float)));
  for (size_t i = 0; i < outputs; ++i) {
    const size_t channel =
        channel_of(i, shape.out_channels, shape.out_channels_together, shape.out_height, shape.out_width);
    if (channel < (size_t)shape.out_channels) sum += values[i]; /* the others mean nothing */
  }
  printf("%s on %s, batch %d: checksum %.6g\n", layer, burin_device_name(device), batch, sum);

done:
  if (status != BURIN_OK) fprintf(stderr, "infer_c: error: %s\n", problem != NULL ? problem : burin_last_error());
  free(values);
  if (device != NULL) {
    burin_memory_free(device, input);
    burin_memory_free(device, output);
    burin_memory_free(device, residual);
    burin_stream_destroy(device, stream);
  }
  burin_workspace_release(workspace);
  burin_kernel_release(kernel);
  burin_package_release(package);
  burin_device_release(device);
  return status;
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    fprintf(stderr, "usage: infer_c MODEL.burin [LAYER [BATCH]]\n");
    return 2;
  }
  return infer(argv[1], argc > 2 ? argv[2] : NULL, argc > 3 ? atoi(argv[3]) : 1);
}
