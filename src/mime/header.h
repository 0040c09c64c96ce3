// The headers of a message or a part, and what can stand in them: encoded words, parameters, addresses,
// dates.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tabella::mime {

struct Header {
  std::string name;
  std::string value;  // decoded, unfolded, UTF-8
  std::string raw;    // as it stands in the message, unfolded
};

struct Address {
  std::string name;  // decoded; may be empty
  std::string address;
};

// Takes the headers and the empty line behind them off the front of `bytes`. Lines may end with CR LF or LF;
// a line that is no header ends them, too.
std::vector<Header> take_headers(std::string_view& bytes);

// The first of that name, whatever its case; null if there is none.
const Header* find_header(const std::vector<Header>& headers, std::string_view name);

// =?charset?B?…?= and =?charset?Q?…?= replaced by what they say.
std::string decode_words(std::string_view text);

// "text/plain; charset=utf-8": what stands in front, in lower case, and the parameters (RFC 2231).
struct Parameters {
  std::string value;
  std::map<std::string, std::string> parameters;  // names in lower case, values decoded

  std::string get(const std::string& name) const {
    const auto found = parameters.find(name);
    return found == parameters.end() ? "" : found->second;
  }
};
Parameters parse_parameters(std::string_view text);

// A list of addresses; groups are opened. What cannot be read is left out.
std::vector<Address> parse_addresses(std::string_view text);

// Seconds since 1970.
std::optional<int64_t> parse_date(std::string_view text);

}  // namespace tabella::mime
