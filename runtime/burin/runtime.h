/* burin's runtime, C. The same as runtime.hpp, with opaque handles and status codes.
 *
 * Every function that returns a burin_status gives BURIN_OK or leaves its outputs untouched and burin_last_error()
 * saying what went wrong. Handles keep alive what they need: they may be released in any order; releasing NULL does
 * nothing. Kernels, packages, networks and devices may be used from several threads; a workspace belongs to one launch
 * at a time, and a network's run to one thread. No CUDA header is needed; struct CUstream_st* is a CUstream, and a
 * cudaStream_t too. */
#ifndef BURIN_RUNTIME_H
#define BURIN_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include "export.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

typedef struct burin_device burin_device;
typedef struct burin_package burin_package;
typedef struct burin_kernel burin_kernel;
typedef struct burin_workspace burin_workspace;
typedef struct burin_network burin_network;
typedef struct burin_network_run burin_network_run;

typedef enum burin_status {
  BURIN_OK = 0,
  BURIN_ERROR_VERIFICATION = 1,
  BURIN_ERROR_USAGE = 2,     /* an argument is wrong; also: no such layer */
  BURIN_ERROR_BAD_INPUT = 3, /* the package file is damaged or absent */
  BURIN_ERROR_UNSUPPORTED = 4,
  BURIN_ERROR_DEVICE = 5, /* no driver, no device, a driver call failed, the device lacks what the kernel needs */
  BURIN_ERROR_INTERNAL = 70
} burin_status;

/* "0.1.0" */
BURIN_API const char* burin_version(void);

/* The text of the last failure in this thread; valid until the next failure in this thread. "" before the first. */
BURIN_API const char* burin_last_error(void);

/* ---- devices */
BURIN_API burin_status burin_device_count(int* count);
BURIN_API burin_status burin_device_open(int ordinal, burin_device** device);
BURIN_API void burin_device_release(burin_device* device);
BURIN_API const char* burin_device_name(const burin_device* device); /* NULL for NULL; lives as long as the handle */
BURIN_API burin_status burin_device_synchronize(const burin_device* device);

/* ---- packages */
BURIN_API burin_status burin_package_open(const burin_device* device, const char* path, burin_package** package);
BURIN_API void burin_package_release(burin_package* package);
BURIN_API int burin_package_layer_count(const burin_package* package);
/* NULL when the index is out of range; lives as long as the handle. */
BURIN_API const char* burin_package_layer_name(const burin_package* package, int index);

/* What a person should know of how a package runs here, one sentence each: a library that some of its kernels call and
 * that is not there, or that refuses, so that burin's own code runs in its place. More may come while kernels are found
 * and launched. NULL when the index is out of range; lives as long as the handle. */
BURIN_API int burin_package_note_count(const burin_package* package);
BURIN_API const char* burin_package_note(const burin_package* package, int index);

/* ---- kernels */
/* What one value of a tensor is. */
typedef enum burin_element {
  BURIN_F32 = 0, /* float */
  BURIN_F16 = 1, /* IEEE half, binary16: CUDA's __half */
  BURIN_BF16 = 2 /* bfloat16, the upper half of a float: CUDA's __nv_bfloat16 */
} burin_element;

/* Tensors are dense, all values of one type. Counted in values of that type from the start of the tensor, a value lies
 * at
 *   ((((image / I) * blocks + channel / C) * height + row) * width + col) * C * I + (channel % C) * I + image % I
 * with C = channels_together, I = images_together, blocks = channels / C rounded up. C = I = 1 is NCHW.
 *
 * A tensor of n images has (n / I rounded up) * I * blocks * C * height * width values: burin_kernel_tensor_bytes.
 * Those of channels and images beyond the last fill it up and mean nothing, but for channels beyond the last of
 * "n8c8hw" (C = I = 8), "nchw8" (C = 8, I = 1), "n4c8hw" (C = 8, I = 4), "nhwc8" and "nhwc4" (I = 1, and C is all
 * channels, rounded up to a multiple of 8 or 4): these must be zeros in what a kernel is given, and are in what it
 * writes. A residual is like the output.
 *
 * Tensors of BURIN_F16 and BURIN_BF16 have I = 2 ("n2chw"): each aligned word of 4 bytes holds the same value of two
 * images, the even image's in its lower half; or I = C = 8 ("n8c8hw"): each 16 aligned bytes hold that of eight
 * images, and eight channels of a pixel are 128 bytes side by side. So they are of floats in "n4c8hw". In "nchw8"
 * each 16 aligned bytes hold eight channels of a pixel, and so they do in "nhwc8"; in "nhwc4" they hold four floats. */
typedef struct burin_kernel_shape {
  int in_channels, in_height, in_width;
  int out_channels, out_height, out_width;
  int needs_residual;
  int in_channels_together,
      out_channels_together;       /* 1; 4: "nchw4"; 8: "n8c8hw", "nchw8", "n4c8hw"; all: "nhwc8", "nhwc4" */
  int in_alignment, out_alignment; /* bytes: what the addresses must be a multiple of */
  int in_images_together, out_images_together; /* 1; 2: "n2chw"; 8: "n8c8hw"; 4: "n4c8hw" */
  burin_element in_element, out_element;
} burin_kernel_shape;

/* The kernel of `layer` that suits `batch` best. Loads it if this is its first use. */
BURIN_API burin_status burin_kernel_find(const burin_package* package, const char* layer, int batch,
                                         burin_kernel** kernel);
BURIN_API void burin_kernel_release(burin_kernel* kernel);
BURIN_API burin_status burin_kernel_get_shape(const burin_kernel* kernel, burin_kernel_shape* shape);
/* What the tensors of a launch with `batch` images take; a residual takes what the output does. */
BURIN_API burin_status burin_kernel_tensor_bytes(const burin_kernel* kernel, int batch, size_t* input, size_t* output);
/* An activity map: which channels of a tensor hold nothing but zeros, in cells of so many images, rows and columns.
 * Cells are counted columns first, then rows, then images; the last may reach beyond the tensor. The byte for a value
 * lies at
 *   ((image / cell_images * rows + row / cell_rows) * cols + col / cell_cols) * channels + channel
 * with rows = height / cell_rows and cols = width / cell_cols, both rounded up. It is 0 where the channel is all zero
 * in the cell. */
typedef struct burin_activity_shape {
  int cell_images, cell_rows, cell_cols; /* all 0: the kernel has no such map */
} burin_activity_shape;

/* The maps that a launch of the kernel may be given. */
BURIN_API burin_status burin_kernel_get_activity(const burin_kernel* kernel, burin_activity_shape* input,
                                                 burin_activity_shape* output);
/* What the maps of `batch` images take; 0: the kernel has no such map. */
BURIN_API burin_status burin_kernel_activity_bytes(const burin_kernel* kernel, int batch, size_t* input,
                                                   size_t* output);
/* Scratch memory of one launch. May be 0: then launch takes NULL for the workspace. */
BURIN_API burin_status burin_kernel_workspace_bytes(const burin_kernel* kernel, int batch, size_t* bytes);

/* Scratch memory for launches of `kernel` with up to `max_batch` images. Launches that may run at the same time need
 * one each. */
BURIN_API burin_status burin_workspace_create(const burin_device* device, const burin_kernel* kernel, int max_batch,
                                              burin_workspace** workspace);
BURIN_API void burin_workspace_release(burin_workspace* workspace);

/* Enqueues the kernel on `stream` (NULL: the default stream) and returns. Device pointers to tensors as
 * burin_kernel_shape says; `residual` is NULL exactly when the kernel needs none. Allocates nothing; can be captured
 * into a CUDA graph. */
BURIN_API burin_status burin_launch(const burin_kernel* kernel, struct CUstream_st* stream, const void* input,
                                    void* output, const void* residual, int batch, const burin_workspace* workspace);

/* The same with activity maps, device pointers; NULL: nothing is skipped, or no map is written. The input's must not
 * call zero what is not. */
BURIN_API burin_status burin_launch_with_activity(const burin_kernel* kernel, struct CUstream_st* stream,
                                                  const void* input, void* output, const void* residual, int batch,
                                                  const burin_workspace* workspace, const void* input_activity,
                                                  void* output_activity);

/* ---- networks: packages that were compiled from a model file */
#define BURIN_MAX_RANK 6

/* An input or output: in NCHW, images one after the other, image_bytes each; floats or halves as the network was
 * compiled (--io). */
typedef struct burin_network_tensor {
  const char* name; /* lives as long as the network's handle */
  int rank;
  int64_t shape[BURIN_MAX_RANK]; /* of one image */
  size_t image_bytes;
  burin_element element;
} burin_network_tensor;

BURIN_API burin_status burin_network_open(const burin_device* device, const char* path, burin_network** network);
BURIN_API void burin_network_release(burin_network* network);
/* As of a package; more may come with each burin_network_bind. */
BURIN_API int burin_network_note_count(const burin_network* network);
BURIN_API const char* burin_network_note(const burin_network* network, int index);
BURIN_API int burin_network_input_count(const burin_network* network);
BURIN_API int burin_network_output_count(const burin_network* network);
BURIN_API burin_status burin_network_get_input(const burin_network* network, int index, burin_network_tensor* input);
BURIN_API burin_status burin_network_get_output(const burin_network* network, int index, burin_network_tensor* output);
/* The batch sizes that the network was compiled for, ascending; 0 when the index is out of range. */
BURIN_API int burin_network_batch_count(const burin_network* network);
BURIN_API int burin_network_batch(const burin_network* network, int index);

/* Makes everything that launches with these device pointers need: memory for the tensors in between, scratch memory and
 * a CUDA graph. `inputs` and `outputs` hold a pointer for each of the network's, in their order; outputs must not
 * overlap anything else. Any batch: one that is no compiled one is run by the next larger program, or by several runs.
 */
BURIN_API burin_status burin_network_bind(const burin_network* network, const void* const* inputs, void* const* outputs,
                                          int batch, burin_network_run** run);
BURIN_API void burin_network_run_release(burin_network_run* run);
/* Enqueues the network on `stream` (NULL: the default stream) and returns. Allocates nothing. */
BURIN_API burin_status burin_network_launch(const burin_network_run* run, struct CUstream_st* stream);

/* ---- memory, conversions and streams, for programs that have no CUDA library of their own at hand */
BURIN_API burin_status burin_memory_alloc(const burin_device* device, size_t bytes, void** memory);
BURIN_API burin_status burin_memory_free(const burin_device* device, void* memory);
BURIN_API burin_status burin_copy_to_device(const burin_device* device, void* target, const void* source, size_t bytes);
/* Waits for the copy, not for work on streams: synchronize those first. */
BURIN_API burin_status burin_copy_to_host(const burin_device* device, void* target, const void* source, size_t bytes);
/* `count` floats as values of another element type, rounded to the nearest (ties to even), and back. In host memory,
 * value by value: the order is the caller's. */
BURIN_API burin_status burin_to_elements(burin_element element, const float* values, size_t count, void* elements);
BURIN_API burin_status burin_from_elements(burin_element element, const void* elements, size_t count, float* values);
BURIN_API burin_status burin_stream_create(const burin_device* device, struct CUstream_st** stream);
BURIN_API burin_status burin_stream_destroy(const burin_device* device, struct CUstream_st* stream);
BURIN_API burin_status burin_stream_synchronize(const burin_device* device, struct CUstream_st* stream);

#ifdef __cplusplus
}
#endif

#endif
