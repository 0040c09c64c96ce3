// The inbox as a system of the house.
#pragma once

#include <memory>

#include "house/system.h"

namespace tabella::inbox {

std::unique_ptr<house::System> make_system();

}  // namespace tabella::inbox
