// The target of a request: /path/with/segments?name=value
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tabella::net {

struct Target {
  std::vector<std::string> segments;                      // decoded; a slash at the end makes an empty one
  std::map<std::string, std::string, std::less<>> query;  // decoded; the first of a name counts

  // Empty where there is no such parameter.
  std::string get(std::string_view name) const {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  }
  bool has(std::string_view name) const { return query.contains(name); }
};

// Nothing if it does not begin with a slash or what is encoded in it is malformed.
std::optional<Target> parse_target(std::string_view target);

// %41 and, in a form or a query, '+' for a blank. Nothing if it is malformed.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank);
std::string percent_encode(std::string_view text);

// The fields of a form, as of a query.
std::map<std::string, std::string, std::less<>> parse_form(std::string_view text);

}  // namespace tabella::net
