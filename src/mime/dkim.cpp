#include "mime/dkim.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/base64.h"
#include "base/checksum.h"
#include "base/text.h"

namespace tabella::mime {
namespace {

constexpr int kLeastRsaBits = 1024;

struct FreedByOpenssl {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
template <class T>
using Owned = std::unique_ptr<T, FreedByOpenssl>;

const unsigned char* octets(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Without a word to whoever stands at the terminal: a key with a passphrase is one that cannot be read.
int no_passphrase(char*, int, int, void*) { return 0; }

bool is_wsp(char c) { return c == ' ' || c == '\t'; }

// Relaxed: runs of blanks are one, and none stand at the end of a line.
void append_relaxed_line(std::string& out, std::string_view line) {
  while (!line.empty() && is_wsp(line.back())) line.remove_suffix(1);
  for (size_t i = 0; i < line.size(); ++i)
    if (!is_wsp(line[i]))
      out.push_back(line[i]);
    else if (!is_wsp(line[i + 1]))
      out.push_back(' ');
}

// RFC 6376, 3.4.4. Empty lines at the end are none.
std::string relaxed_body(std::string_view body) {
  std::string out;
  out.reserve(body.size() + 2);
  size_t content = 0;  // where the last line that is not empty ends
  while (!body.empty()) {
    const auto end = body.find("\r\n");
    const auto before = out.size();
    append_relaxed_line(out, body.substr(0, end));
    const bool empty = out.size() == before;
    out.append("\r\n");
    if (!empty) content = out.size();
    body.remove_prefix(end == std::string_view::npos ? body.size() : end + 2);
  }
  out.resize(content);
  return out;
}

struct SignedField {
  std::string name;      // in lower case
  std::string_view raw;  // all behind the colon, with the lines that continue it
};

// Takes the headers and the empty line off the front.
std::vector<SignedField> take_fields(std::string_view& message) {
  std::vector<SignedField> fields;
  while (!message.empty()) {
    auto end = message.find("\r\n");
    if (end == 0) {
      message.remove_prefix(2);
      break;
    }
    while (end != std::string_view::npos && end + 2 < message.size() && is_wsp(message[end + 2]))
      end = message.find("\r\n", end + 2);
    const auto field = message.substr(0, end);
    message.remove_prefix(end == std::string_view::npos ? message.size() : end + 2);
    const auto colon = field.find(':');
    if (colon == std::string_view::npos) continue;
    fields.push_back({lower(trim(field.substr(0, colon))), field.substr(colon + 1)});
  }
  return fields;
}

// RFC 6376, 3.4.2, without the CR LF at its end.
void append_relaxed_field(std::string& out, std::string_view name, std::string_view raw) {
  std::string unfolded;
  unfolded.reserve(raw.size());
  for (size_t i = 0; i < raw.size(); ++i)
    if (raw[i] == '\r' && i + 1 < raw.size() && raw[i + 1] == '\n')
      ++i;
    else
      unfolded.push_back(raw[i]);
  out.append(name);
  out.push_back(':');
  append_relaxed_line(out, trim(unfolded));
}

// What readers see and programs act upon. Not what servers on the way add or change (Received, Return-Path).
bool is_signed(std::string_view name) {
  static constexpr std::array<std::string_view, 14> kSigned = {"from",
                                                               "to",
                                                               "cc",
                                                               "subject",
                                                               "date",
                                                               "sender",
                                                               "reply-to",
                                                               "message-id",
                                                               "mime-version",
                                                               "content-type",
                                                               "references",
                                                               "in-reply-to",
                                                               "content-transfer-encoding",
                                                               "content-id"};
  return std::ranges::find(kSigned, name) != kSigned.end() || name.starts_with("list-");
}

// The fields that are signed, in the order in which h= names them: those of one name from the last to the
// first, as verifiers look for them.
std::vector<const SignedField*> signed_fields(const std::vector<SignedField>& fields) {
  std::vector<const SignedField*> chosen;
  for (auto field = fields.rbegin(); field != fields.rend(); ++field)
    if (is_signed(field->name)) chosen.push_back(&*field);
  return chosen;
}

// A tag list that is folded between its tags, and within those that are long.
class TagList {
 public:
  explicit TagList(std::string_view name) : text_(fmt::format("{}:", name)) {}

  void tag(std::string_view name, std::string_view value) { append(fmt::format(" {}={};", name, value)); }
  // At colons.
  void names(std::string_view name, const std::vector<std::string>& values) {
    open(name);
    for (size_t i = 0; i < values.size(); ++i) append(i == 0 ? values[i] : ":" + values[i]);
    close();
  }
  void open(std::string_view name) { append(fmt::format(" {}=", name)); }
  // Folded wherever there is no more room: blanks within base64 do not count.
  void base64(std::string_view value) {
    while (!value.empty()) {
      if (column() >= kWidth) fold();
      const auto piece = value.substr(0, kWidth - column());
      text_.append(piece);
      value.remove_prefix(piece.size());
    }
  }
  void close() { text_.push_back(';'); }
  const std::string& text() const { return text_; }

 private:
  static constexpr size_t kWidth = 74;

  size_t column() const { return text_.size() - line_; }
  void fold() {
    text_.append("\r\n ");
    line_ = text_.size() - 1;
  }
  void append(std::string_view piece) {
    if (column() + piece.size() > kWidth) {
      fold();
      piece = trim(piece);
    }
    text_.append(piece);
  }

  std::string text_;
  size_t line_ = 0;  // where the last line begins
};

// A name that can stand in a tag and in DNS.
bool is_dns_name(std::string_view name) {
  return !name.empty() && name.size() <= 253 && std::ranges::all_of(name, [](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
  });
}

}  // namespace

struct DkimKey::Key {
  Owned<EVP_PKEY> key;
  bool rsa;

  std::string_view algorithm() const { return rsa ? "rsa-sha256" : "ed25519-sha256"; }

  // RFC 6376 signs the hash of the headers with RSA; RFC 8463 signs that hash, as if it were the message.
  std::string sign(std::string_view headers) const {
    const auto digest = rsa ? std::string() : sha256(headers);
    const auto input = rsa ? headers : std::string_view(digest);
    const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
    size_t size = static_cast<size_t>(EVP_PKEY_get_size(key.get()));
    std::string signature(size, '\0');
    if (EVP_DigestSignInit(context.get(), nullptr, rsa ? EVP_sha256() : nullptr, nullptr, key.get()) != 1 ||
        EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                       octets(input), input.size()) != 1)
      throw std::runtime_error("OpenSSL cannot sign");
    signature.resize(size);
    return signature;
  }

  // RSA: the SubjectPublicKeyInfo; Ed25519: the 32 bytes alone.
  std::string public_bytes() const {
    if (!rsa) {
      std::string bytes(32, '\0');
      size_t size = bytes.size();
      EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(bytes.data()), &size);
      return bytes;
    }
    std::string bytes(static_cast<size_t>(i2d_PUBKEY(key.get(), nullptr)), '\0');
    auto* at = reinterpret_cast<unsigned char*>(bytes.data());
    i2d_PUBKEY(key.get(), &at);
    return bytes;
  }
};

DkimKey::DkimKey(std::string_view domain, std::string_view selector, std::shared_ptr<const Key> key)
    : domain_(domain), selector_(selector), key_(std::move(key)) {}

std::expected<DkimKey, std::string> DkimKey::from_pem(std::string_view domain, std::string_view selector,
                                                      std::string_view pem) {
  if (!is_dns_name(domain)) return std::unexpected("the domain of a DKIM key must be a name in ASCII");
  if (!is_dns_name(selector)) return std::unexpected("the selector of a DKIM key must be a name in ASCII");
  const Owned<BIO> source(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(source.get(), nullptr, no_passphrase, nullptr));
  // What is left in OpenSSL's queue would be taken for a failure of this thread's next TLS connection.
  ERR_clear_error();
  if (!key) return std::unexpected("the DKIM key is no private key in PEM without a passphrase");
  const bool rsa = EVP_PKEY_get_base_id(key.get()) == EVP_PKEY_RSA;
  if (!rsa && EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519)
    return std::unexpected("a DKIM key must be RSA or Ed25519");
  if (rsa && EVP_PKEY_get_bits(key.get()) < kLeastRsaBits)
    return std::unexpected(fmt::format("an RSA key for DKIM must have {} bits at least", kLeastRsaBits));
  return DkimKey(domain, selector, std::make_shared<const Key>(std::move(key), rsa));
}

std::string DkimKey::dns_name() const { return fmt::format("{}._domainkey.{}", selector_, domain_); }

std::string DkimKey::dns_record() const {
  return fmt::format("v=DKIM1; k={}; p={}", key_->rsa ? "rsa" : "ed25519", to_base64(key_->public_bytes()));
}

std::string DkimKey::sign(std::string_view message, TimePoint now) const {
  auto body = message;
  const auto fields = take_fields(body);
  const auto chosen = signed_fields(fields);
  std::vector<std::string> names;
  for (const auto* field : chosen) names.push_back(field->name);
  // Once more than there are: a second From that somebody adds breaks the signature (RFC 6376, 8.15).
  names.emplace_back("from");

  const auto seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch();
  TagList tags("DKIM-Signature");
  tags.tag("v", "1");
  tags.tag("a", key_->algorithm());
  tags.tag("c", "relaxed/relaxed");
  tags.tag("d", domain_);
  tags.tag("s", selector_);
  tags.tag("t", std::to_string(seconds.count()));
  tags.names("h", names);
  tags.open("bh");
  tags.base64(to_base64(sha256(relaxed_body(body))));
  tags.close();
  tags.open("b");

  std::string to_sign;
  for (const auto* field : chosen) {
    append_relaxed_field(to_sign, field->name, field->raw);
    to_sign.append("\r\n");
  }
  // The signature signs its own header, too, as it is without the signature.
  const std::string_view header = tags.text();
  append_relaxed_field(to_sign, "dkim-signature", header.substr(header.find(':') + 1));
  tags.base64(to_base64(key_->sign(to_sign)));
  return tags.text() + "\r\n";
}

}  // namespace tabella::mime
