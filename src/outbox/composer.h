// Makes messages ready to be sent: composed or completed, and signed by the keys of their sender's domain.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "mime/compose.h"
#include "mime/dkim.h"
#include "store/long_work.h"

namespace tabella::outbox {

struct Composed {
  std::string content;  // with all headers, CR LF
  std::string message_id;
  std::string subject;
  std::string from;  // the address in From
};

// Thread-safe.
class Composer {
 public:
  // Several keys may be for one domain: each signs.
  Composer(std::string hostname, std::vector<mime::DkimKey> keys, const Clock& clock,
           store::LongWork long_work);

  // `id` is the email's: its Message-ID is made of it, and stays the same however often it is composed. What
  // the draft says of message_id and date is filled in.
  boost::asio::awaitable<Checked<Composed>> compose(std::string id, mime::Draft draft) const;
  // Somebody else's message.
  boost::asio::awaitable<Checked<Composed>> complete(std::string id, std::string raw) const;

 private:
  Checked<Composed> finish(mime::Prepared prepared) const;
  std::string message_id_of(const std::string& id) const;

  const std::string hostname_;
  const std::multimap<std::string, mime::DkimKey> keys_;  // by domain
  const Clock& clock_;
  const store::LongWork long_work_;
};

}  // namespace tabella::outbox
