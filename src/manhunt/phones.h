// The simulator's phones: those that ring, and how they stop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "manhunt/model.h"
#include "manhunt/searches.h"
#include "store/store.h"

namespace tabella::manhunt {

// Thread-safe.
class Phones {
 public:
  Phones(store::Store& store, Searches& searches) : store_(store), searches_(searches) {}

  // Attempts at searches that are active and that nobody has answered, newest first; of a domain, or of all
  // where that is empty. A hundred at most, and a look at so many rows at most.
  store::Async<std::vector<Attempt>> ringing(std::string domain);
  // It rings no longer; the search goes on.
  store::Async<void> hang_up(const Attempt& attempt);

 private:
  // Adds those of a page. Where to go on; nothing: it was the last.
  store::Async<std::optional<store::Item>> add_page(std::vector<Attempt>& ringing, const std::string& domain,
                                                    std::optional<store::Item> from);

  store::Store& store_;
  Searches& searches_;
};

}  // namespace tabella::manhunt
