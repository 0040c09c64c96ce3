#pragma once

#include <memory>

#include "house/system.h"

namespace tabella::reminders {

std::unique_ptr<house::System> make_system();

}  // namespace tabella::reminders
