// DKIM signatures (RFC 6376, and RFC 8463 for Ed25519): a domain says that a message is its own.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace tabella::mime {

// A domain's private key. Copies share it; it does not change, and any thread may sign with it.
class DkimKey {
 public:
  // RSA of 1024 bits or more, or Ed25519, in PEM (PKCS #8 or the older form). A sentence if it is none.
  static std::expected<DkimKey, std::string> from_pem(std::string_view domain, std::string_view selector,
                                                      std::string_view pem);

  const std::string& domain() const { return domain_; }
  // Where the public key has to be: selector._domainkey.domain.
  std::string dns_name() const;
  // The TXT record there: "v=DKIM1; k=rsa; p=…". Longer than 255 bytes for RSA of 2048 bits: in DNS it stands
  // in pieces.
  std::string dns_record() const;

  // The whole header to put in front of `message`: "DKIM-Signature: …\r\n". Both are canonicalised as
  // "relaxed". The message's lines end with CR LF; it must not be changed afterwards.
  std::string sign(std::string_view message, TimePoint now) const;

 private:
  struct Key;
  DkimKey(std::string_view domain, std::string_view selector, std::shared_ptr<const Key> key);

  std::string domain_;
  std::string selector_;
  std::shared_ptr<const Key> key_;
};

}  // namespace tabella::mime
