// Composes emails from their payloads: those of our own that need something fetched first, and those of other
// programs, whose payloads are files.
#pragma once

#include <optional>
#include <string>

#include "net/outbound.h"
#include "outbox/composer.h"
#include "outbox/folder.h"
#include "outbox/message.h"
#include "outbox/payload.h"
#include "outbox/service.h"
#include "store/long_work.h"

namespace tabella::outbox {

// What came of it.
struct IntakeResult {
  enum class Kind {
    ready,
    invalid,  // it never will be
    later,    // something could not be had now
    foreign,  // it is not ours to read: there is no folder
  };
  Kind kind = Kind::ready;
  std::string reason = {};
  std::string content = {};
};

// Thread-safe.
class Intake {
 public:
  struct Parts {
    Outbox& outbox;
    const Composer& composer;
    net::Outbound& outbound;
    const Folder* folder;  // null: there is none
    store::LongWork long_work;
    size_t max_size;  // of a message
  };
  explicit Intake(Parts parts) : parts_(parts) {}

  bool has_folder() const { return parts_.folder != nullptr; }
  // Fills in what the payload says of the message, and writes the .eml where there is a folder.
  boost::asio::awaitable<IntakeResult> take(Email& email, Message& message);
  // Reads the .eml of another program's email that is READY already.
  boost::asio::awaitable<IntakeResult> read_eml(const Email& email, Message& message);

 private:
  // The attachments that are somewhere else, put into the draft.
  boost::asio::awaitable<IntakeResult> fetch(Payload& payload);
  boost::asio::awaitable<IntakeResult> fetch_uri(const PayloadAttachment& attachment, size_t most,
                                                 mime::Attachment& into);
  boost::asio::awaitable<IntakeResult> read_path(const PayloadAttachment& attachment, size_t most,
                                                 mime::Attachment& into);

  const Parts parts_;
};

}  // namespace tabella::outbox
