// Links by which a person answers: signed by the search, good for one attempt and for a while. Opening one
// answers nothing; the button on its page does.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "manhunt/model.h"

namespace tabella::manhunt {

inline constexpr std::string_view kLinkPath = "/manhunt/r/";

// What stands behind it.
std::string link_token(const Search& search, const AttemptId& attempt, TimePoint expires);

struct LinkToken {
  std::string search;
  AttemptId attempt;
  TimePoint expires;
  std::string signature;
};
// Nothing: it is none. Whether it is good says is_genuine(), once the search is known.
std::optional<LinkToken> parse_link_token(std::string_view token);
bool is_genuine(const LinkToken& token, const Search& search);

// For those who may see what was said, and not answer it: with … for what makes a link good.
std::string without_links(std::string_view text);

// Four letters by which a text names the attempt that it answers.
std::string reply_code(const Search& search, const AttemptId& attempt);

}  // namespace tabella::manhunt
