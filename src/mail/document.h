// What of a message can be searched for.
#pragma once

#include "mail/model.h"
#include "mime/message.h"
#include "search/document.h"

namespace tabella::mail {

// Fields, besides all of them together.
inline constexpr char kFrom = 'f';
inline constexpr char kTo = 't';
inline constexpr char kCc = 'c';
inline constexpr char kBcc = 'b';
inline constexpr char kReplyTo = 'r';
inline constexpr char kSubject = 's';
inline constexpr char kMessageId = 'm';
inline constexpr char kAttachment = 'a';

inline constexpr uint32_t kHasAttachment = 1;
inline constexpr uint32_t kHasInline = 2;

// Words of which a document has all or nothing: whose inbox it is in.
std::string inbox_key(std::string_view name);

// Whose inboxes it is in.
std::vector<std::string> keys_of(const Message& message);
search::Document document_of(const Message& message, const mime::Message& parsed);
// Labels as the index has them.
inline constexpr const char* kReadLabel = "read";
std::string tag_label(std::string_view tag);
std::vector<std::string> labels_of(const Message& message);

}  // namespace tabella::mail
