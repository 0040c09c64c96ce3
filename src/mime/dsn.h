// Delivery status notifications: what other servers say became of a message, long after they took it. By RFC
// 3464, and in the plain text that qmail sends (QSBMF).
//
// Whatever the bytes are, reading them takes time that grows with their number and no faster. Anybody can
// send such a message: believe it only if it came to an address that nobody can guess.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tabella::mime {

struct DeliveryStatus {
  enum class Action { failed, delayed, delivered, relayed, expanded };

  std::string original_recipient;  // as the sender named it; may be empty
  std::string final_recipient;     // as the server that reports knows it; may be empty
  Action action = Action::failed;
  std::string status;      // "5.1.1"; may be empty
  std::string diagnostic;  // what the server said, shortened; may be empty
};

// What it says of each recipient. Empty if it is no such message, or says nothing of anybody.
std::vector<DeliveryStatus> parse_delivery_report(std::string_view message);

}  // namespace tabella::mime
