// Addresses that nothing is sent to any more, because mail to them bounced, because they complained, or
// because somebody said so. Rows of our table under the id "#suppression", by address in lower case.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/store.h"

namespace tabella::outbox {

struct Suppressed {
  std::string address;
  std::string reason;           // "BOUNCE", "COMPLAINT" or "MANUAL"
  TimePoint at = {};            // filled in when it is added
  std::string email = {};       // whose bounce it was; empty: nobody's
  std::string diagnostic = {};  // what was said
};

struct SuppressedPage {
  std::vector<Suppressed> addresses;
  std::string next;  // empty: these were the last
};

// Thread-safe.
class Suppressions {
 public:
  Suppressions(store::Store& store, const Clock& clock, std::string table)
      : store_(store), clock_(clock), table_(std::move(table)) {}

  store::Async<void> add(Suppressed suppressed);   // one that is there already is replaced
  store::Async<bool> remove(std::string address);  // whether it was there
  store::Async<std::optional<Suppressed>> find(std::string address);
  // By address. `from` is the `next` of the page before.
  store::Async<SuppressedPage> list(size_t limit, std::string from);
  // Those of the addresses that are on the list, as they are spelt there: in lower case.
  store::Async<std::set<std::string>> among(std::vector<std::string> addresses);

 private:
  store::Store& store_;
  const Clock& clock_;
  const std::string table_;
};

}  // namespace tabella::outbox
