// Manhunt as a system of the house.
#pragma once

#include <functional>
#include <memory>

#include "house/system.h"
#include "manhunt/providers.h"

namespace tabella::manhunt {

// `send_email` says, once all systems before this one are started, who sends emails; an empty one if nobody
// does.
std::unique_ptr<house::System> make_system(std::function<SendEmail()> send_email = [] {
  return SendEmail();
});

}  // namespace tabella::manhunt
