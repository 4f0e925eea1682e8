#pragma once

// Within the project only: `cmake --install` puts ir/types/dtype.h itself in this place.
#include "ir/types/dtype.h"
