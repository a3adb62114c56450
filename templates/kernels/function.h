// What is applied to each result, by the constants of function.def, for templates that have the list of them.
#pragma once

#include "template_kernel.h"

#include "apply_function.h"
