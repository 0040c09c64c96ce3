// Searches and attempts as JSON shows them to others.
#pragma once

#include <string>

#include "base/json.h"
#include "manhunt/model.h"

namespace tabella::manhunt {

void write_search(JsonObjectWriter& out, const Search& search);
// Links by which it can be answered are for those alone who may answer it.
void write_attempt(std::string& out, const Attempt& attempt, bool with_links);

}  // namespace tabella::manhunt
