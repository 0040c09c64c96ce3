// The systems of this process.
#pragma once

#include "house/system.h"

namespace tabella::app {

// Each program that is built from app/ has its own list.
house::Systems make_systems();

}  // namespace tabella::app
