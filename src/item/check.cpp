#include "item/check.h"

#include "base/bytes.h"
#include "item/number.h"
#include "item/value.h"

namespace tabella::item {
namespace {

constexpr size_t kLongestNumber = 23;

// Reads on only while all was well.
class Inspector {
 public:
  explicit Inspector(std::string_view bytes) : in_(bytes) {}

  bool ok() const { return ok_; }
  bool done() const { return ok_ && in_.empty(); }

  uint64_t varint() {
    const auto before = in_;
    const auto value = take_varint(in_);
    const auto used = before.substr(0, before.size() - in_.size());
    require(!used.empty() && static_cast<uint8_t>(used.back()) < 0x80 && encode_number(value) == used);
    return value;
  }

  std::string_view bytes(uint64_t count) {
    require(count <= in_.size());
    return ok_ ? take(in_, count) : std::string_view();
  }

  std::string_view sized() { return bytes(varint()); }

  void number() {
    const auto length = number_length(in_);
    require(length >= 1 && length <= kLongestNumber);
    if (!ok_) return;
    const auto encoded = take(in_, length);
    const auto again = parse_number(number_text(encoded));
    require(again && *again == encoded);
  }

  void value(int depth) {
    const auto tag = bytes(1);
    if (!ok_) return;
    const auto type = ValueView(tag).type();
    switch (type) {
      case Type::BOOL:
      case Type::NUL: return;
      case Type::N: return number();
      case Type::S:
      case Type::B: sized(); return;
      case Type::SS:
      case Type::NS:
      case Type::BS:
      case Type::L:
      case Type::M: return container(type, depth);
    }
    ok_ = false;
  }

  void require(bool fact) { ok_ = ok_ && fact; }

 private:
  void container(Type type, int depth) {
    require(depth <= kMaxNesting);
    Inspector inner(sized());
    const auto count = inner.varint();
    require(count > 0 || !is_set(type));
    for (uint64_t i = 0; ok_ && inner.ok_ && i < count; ++i) {
      if (type == Type::NS) {
        inner.number();
      } else if (is_set(type)) {
        inner.sized();
      } else {
        if (type == Type::M) inner.sized();
        inner.value(depth + 1);
      }
    }
    require(inner.done());
  }

  std::string_view in_;
  bool ok_ = true;
};

}  // namespace

bool is_well_formed(std::string_view item_bytes) {
  Inspector in(item_bytes);
  in.require(in.bytes(1) == std::string_view("\1"));
  const auto size = in.varint();
  const auto count = in.varint();
  for (uint64_t i = 0; in.ok() && i < count; ++i) {
    in.sized();
    in.value(0);
  }
  if (!in.done()) return false;
  size_t counted = 0;
  for (Attributes a{ItemView(item_bytes)}; a.next();) counted += a.name().size() + a.value().size();
  return counted == size;
}

}  // namespace tabella::item
