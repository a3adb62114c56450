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

static size_t element_bytes(burin_element element) { return element == BURIN_F32 ? 4 : 2; }

/* Where a value of the output lies: runtime.h has the formula. */
static size_t output_index(const burin_kernel_shape* shape, size_t image, size_t channel, size_t row, size_t col) {
  const size_t side = (size_t)shape->out_channels_together, images = (size_t)shape->out_images_together;
  const size_t blocks = ((size_t)shape->out_channels + side - 1) / side;
  const size_t block = image / images * blocks + channel / side;
  const size_t pixel = (block * (size_t)shape->out_height + row) * (size_t)shape->out_width + col;
  return (pixel * side + channel % side) * images + image % images;
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
  void* elements = NULL; /* the values as the kernel has them: float, half or bfloat16 */
  size_t input_bytes = 0, output_bytes = 0;
  double sum = 0;

  TRY(burin_device_open(0, &device));
  TRY(burin_package_open(device, path, &package));
  if (layer == NULL) layer = burin_package_layer_name(package, 0);
  TRY(burin_kernel_find(package, layer, batch, &kernel));

  burin_kernel_shape shape;
  TRY(burin_kernel_get_shape(kernel, &shape));
  TRY(burin_kernel_tensor_bytes(kernel, batch, &input_bytes, &output_bytes));
  const size_t inputs = input_bytes / element_bytes(shape.in_element);
  const size_t outputs = output_bytes / element_bytes(shape.out_element);
  values = calloc(inputs > outputs ? inputs : outputs, sizeof(float));
  elements = calloc(1, input_bytes > output_bytes ? input_bytes : output_bytes);
  if (values == NULL || elements == NULL) {
    status = BURIN_ERROR_INTERNAL;
    problem = "out of host memory";
    goto done;
  }

  TRY(burin_memory_alloc(device, input_bytes, &input));
  TRY(burin_memory_alloc(device, output_bytes, &output));
  if (shape.needs_residual) {
    TRY(burin_memory_alloc(device, output_bytes, &residual));
    TRY(burin_copy_to_device(device, residual, elements, output_bytes)); /* all zero */
  }
  const size_t channels_together = (size_t)shape.in_channels_together,
               images_together = (size_t)shape.in_images_together;
  const size_t blocks = ((size_t)shape.in_channels + channels_together - 1) / channels_together;
  const size_t block = (size_t)shape.in_height * (size_t)shape.in_width * channels_together * images_together;
  for (size_t i = 0; i < inputs; ++i) {
    const size_t channel = i / block % blocks * channels_together + i / images_together % channels_together;
    if (channel < (size_t)shape.in_channels) values[i] = (float)(i % 17) / 16.0f - 0.5f; /* what fills up stays zero */
  }
  TRY(burin_to_elements(shape.in_element, values, inputs, elements));
  TRY(burin_copy_to_device(device, input, elements, input_bytes));

  TRY(burin_stream_create(device, &stream));
  TRY(burin_workspace_create(device, kernel, batch, &workspace));
  TRY(burin_launch(kernel, stream, input, output, residual, batch, workspace));
  TRY(burin_stream_synchronize(device, stream));

  TRY(burin_copy_to_host(device, elements, output, output_bytes));
  TRY(burin_from_elements(shape.out_element, elements, outputs, values));
  for (int image = 0; image < batch; ++image) {
    for (int channel = 0; channel < shape.out_channels; ++channel) {
      for (int row = 0; row < shape.out_height; ++row) {
        for (int col = 0; col < shape.out_width; ++col) {
          sum += values[output_index(&shape, (size_t)image, (size_t)channel, (size_t)row, (size_t)col)];
        }
      }
    }
  }
  printf("%s on %s, batch %d: checksum %.6g\n", layer, burin_device_name(device), batch, sum);

done:
  if (status != BURIN_OK) fprintf(stderr, "infer_c: error: %s\n", problem != NULL ? problem : burin_last_error());
  free(values);
  free(elements);
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
