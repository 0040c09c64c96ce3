// MailHog's shapes: how it names the parts of an address and of a message in JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mail/content.h"

namespace tabella::mail {

struct Message;

struct PathParts {
  std::vector<std::string> relays;
  std::string mailbox;
  std::string domain;
};
PathParts split_path(std::string_view address);

// The headers that MailHog adds to what it shows: Message-ID where there is none, Received and Return-Path.
void add_trace(Content& content, const Message& message, const std::string& hostname);

void append_message_json(std::string& out, const Message& message, const std::string& hostname);

}  // namespace tabella::mail
