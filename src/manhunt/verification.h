// Whether a method reaches who it is said to: a code is sent by it, and comes back.
#pragma once

#include <string>

#include "base/clock.h"
#include "manhunt/domains.h"
#include "manhunt/model.h"
#include "manhunt/sender.h"
#include "store/store.h"

namespace tabella::manhunt {

enum class Confirmation { confirmed, wrong, too_many, none };

// Thread-safe.
class Verification {
 public:
  Verification(store::Store& store, const Clock& clock, Sender& sender, std::string table)
      : store_(store), clock_(clock), sender_(sender), table_(std::move(table)) {}

  // Sends a code. Nothing: enough was sent there for now.
  store::Async<std::optional<Sent>> begin(const Domain& domain, const Contact& contact, const Method& method);
  store::Async<Confirmation> confirm(const Method& method, std::string code);
  // Sends a test, and says what became of it and by whom it was sent.
  // Nothing: as above.
  store::Async<std::optional<std::pair<std::string, Sent>>> test(const Domain& domain, const Contact& contact,
                                                                 const Method& method);

 private:
  // Nobody can be swamped with what is sent before they are known to want it.
  store::Async<bool> may_send(const Domain& domain, const Method& method);

  store::Store& store_;
  const Clock& clock_;
  Sender& sender_;
  const std::string table_;
};

}  // namespace tabella::manhunt
