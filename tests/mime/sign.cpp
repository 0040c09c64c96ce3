// Signs the message on standard input: sign KEY_FILE DOMAIN SELECTOR. `sign KEY_FILE DOMAIN SELECTOR record`
// prints the record for DNS.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "mime/dkim.h"

namespace {

std::string all_of(std::istream& in) { return {std::istreambuf_iterator<char>(in), {}}; }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  std::ifstream file(argv[1]);
  const auto key = tabella::mime::DkimKey::from_pem(argv[2], argv[3], all_of(file));
  if (!key) {
    std::cerr << key.error() << '\n';
    return 1;
  }
  if (argc > 4) {
    std::cout << key->dns_record();
    return 0;
  }
  const auto message = all_of(std::cin);
  std::cout << key->sign(message, std::chrono::system_clock::now()) << message;
}
