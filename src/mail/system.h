// Mail as a system of the process: its parts, its ports, its background, put together.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "house/system.h"
#include "smtp/session.h"
#include "store/store.h"

namespace tabella::mail {

// How other systems of the process hand mail over: as if it had come by SMTP, without the way. Filled in when
// mail starts; empty where there is no mail. Takes from any thread; what it is called there comes back.
struct Handover {
  std::function<store::Async<std::string>(smtp::Envelope envelope)> take;
};

std::unique_ptr<house::System> make_system(std::shared_ptr<Handover> handover = nullptr);

}  // namespace tabella::mail
