/* BURIN_API marks what libburin_runtime.so exports; everything else in it is hidden. */
#ifndef BURIN_EXPORT_H
#define BURIN_EXPORT_H

#if defined(__GNUC__)
#define BURIN_API __attribute__((visibility("default")))
#else
#define BURIN_API
#endif

#endif
