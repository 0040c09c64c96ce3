// What the plain page looks like: HTML without script, made here and nowhere else. All that comes from
// messages is escaped.
#pragma once

#include <string>
#include <string_view>

#include "mail/model.h"

namespace tabella::mail {

// `base`: what paths begin with.
std::string begin_page(const std::string& base, std::string_view title, std::string_view query);

// The page of a list: which messages it has, of how many.
struct ListPage {
  std::string query;
  size_t start = 0;
  size_t count = 0;
  size_t limit = 0;
  size_t total = 0;
};
void begin_list(std::string& html, const std::string& base, const ListPage& page);
void append_row(std::string& html, const std::string& base, const Message& message, Nanoseconds now);
void end_list(std::string& html, const std::string& base, const ListPage& page);

// `tab`: html, text, source, headers or parts; empty: what suits the message.
std::string message_page(const std::string& base, const Message& message, std::string tab);
std::string message_path(const std::string& base, const std::string& id);

// A page with nothing on it but a few words.
void append_notice(std::string& html, std::string_view title, std::string_view text);

}  // namespace tabella::mail
