#include "outbox/folder.h"

#include <gtest/gtest.h>

#include "support/folder.h"

namespace tabella::outbox {
namespace {

TEST(SharedFolder, IsKnownByItsTruePathAndByTheOneItWasGiven) {
  const test::Folder scratch;
  const std::filesystem::path base = scratch.path();
  std::filesystem::create_directory(base / "true");
  std::filesystem::create_directory_symlink(base / "true", base / "link");
  ASSERT_TRUE(Folder(base / "link").write_new((base / "link/file").string(), "text"));
  for (const auto* spelling : {"link", "link/"})
    for (const auto& path : {base / "link/file", base / "true/file", std::filesystem::path("file")})
      EXPECT_EQ(Folder(base / spelling).read(path.string(), 100), "text") << spelling << " " << path;
}

TEST(SharedFolder, LetsNothingOut) {
  const test::Folder scratch;
  const std::filesystem::path base = scratch.path();
  std::filesystem::create_directory(base / "inside");
  const Folder folder(base / "inside");
  for (const auto& path : {base / "inside/../secret", base / "secret", std::filesystem::path("../secret")})
    EXPECT_FALSE(folder.read(path.string(), 100)) << path;
}

}  // namespace
}  // namespace tabella::outbox
