// Finding bytes in bytes, in time that grows with both and no faster, whatever they are: std::string's find
// compares from the start again at every place that looks right, which somebody can choose to be all of them.
#pragma once

#include <string_view>

namespace tabella {

bool has_substring(std::string_view text, std::string_view part);

}  // namespace tabella
