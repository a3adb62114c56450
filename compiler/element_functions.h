// What is known of functions of single numbers: their values in float64, how far rounding may bring them, and which
// signs they have. A new function has its place here and in templates/kernels/apply_function.h, and nowhere else.
#pragma once

#include <vector>

#include "ir/operators.h"

namespace burin {

// f(x) for one value.
double reference_element(const Elementwise& op, double x);
// One of the operands, of which the first is `a`: of a Combine whose operands are not swapped.
double reference_combination(const Combine& op, double a, double b);

// What rounding y, the function of x, can grow with, in units of tolerance_of(): what a kernel adds to the error of x.
double rounding_of(const Elementwise& op, double x, double y);
// The same of what a combination gives.
double rounding_of(const Combine& op, double a, double b, double y);

// How far y moves, the function of x, when x is off by so much at most, in either direction.
double moved_by(const Elementwise& op, double x, double off);

// Whether it gives nothing below zero: of any number, or of those that are not.
bool never_negative(const Elementwise& op);
bool keeps_nonnegative(const Elementwise& op);
// The same of combinations, of operands that are not negative.
bool keeps_nonnegative(const Combine& op);

// Whether all are the same number: what a scale or a shift by channel is that is one for all.
bool is_uniform(const std::vector<float>& values);

}  // namespace burin
