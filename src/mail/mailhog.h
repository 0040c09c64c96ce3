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

// The JSON of a message, piece by piece: the message is there once, however long its JSON becomes. Borrows
// from the message.
class MessageJson {
 public:
  MessageJson(const Message& message, const std::string& hostname);

  // Appends some more, in pieces that take a fraction of a millisecond. False: that was all.
  bool next(std::string& out);

 private:
  friend class MessageJsonMaker;
  // JSON as it is, then a text of the message that is still to be written.
  struct Piece {
    std::string json;
    std::string_view text;
  };
  std::vector<Piece> pieces_;
  size_t piece_ = 0;
  size_t at_ = 0;  // in its text
};

// All of it.
void append_message_json(std::string& out, const Message& message, const std::string& hostname);

}  // namespace tabella::mail
