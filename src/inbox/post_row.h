// The row of a post: the only place that knows its attributes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inbox/model.h"
#include "inbox/preferences.h"
#include "store/rows.h"

namespace tabella::inbox {

enum class PostState { scheduled, sending, done, canceled, redacted };
std::string_view name_of(PostState state);

struct Post {
  std::string id;
  PostState state = PostState::done;
  bool everyone = false;
  int64_t count = 0;  // of users
  int64_t done = 0;   // of them
  std::string key;
  std::optional<TimePoint> deliver_at;
};

// Where a message goes besides the bell, if its user wants that.
struct ChannelPlan {
  Channel channel;
  std::chrono::seconds after{0};  // then, if it has not been read
  bool wanted = false;            // by users who say nothing themselves
};

// A post, with what it takes to carry it out.
struct PostRow {
  Post post;
  Content content;
  std::vector<std::string> users;  // where they are few
  int64_t parts = 0;               // rows of users, where they are many
  std::string fingerprint;         // of the request, where there is a key
  std::vector<ChannelPlan> channels;
};

inline constexpr const char* kPostSort = "post";
inline constexpr const char* kPostState = "state";
inline constexpr const char* kPostDone = "done";
inline constexpr const char* kPostMessage = "message";
inline constexpr const char* kPostId = "id";
inline constexpr const char* kPostFingerprint = "fingerprint";
inline constexpr const char* kPostUsers = "uids";
inline constexpr const char* kRemovePost = "removeat";
inline constexpr size_t kUsersInPart = 500;

std::string post_partition(const Place& place, std::string_view id);
store::Item post_key(const Place& place, std::string_view id);
store::Row to_row(const Place& place, const PostRow& post);
PostRow read_post(const std::string& id, item::ItemView row);

// The rows of its users, where they are many.
store::Item part_key(const Place& place, std::string_view id, int64_t part);
store::Item part_row(const Place& place, std::string_view id, int64_t part,
                     std::span<const std::string> users, int64_t remove);
std::vector<std::string> users_of_row(item::ItemView row);

}  // namespace tabella::inbox
