// SPDX-License-Identifier: MIT
// An object that has a heap. The code that fills the object uses plain containers and knows nothing of heaps. The
// end of the object frees no node: all of its memory goes at once.
#include <cstddef>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "freehold/heap_scope.hpp"

namespace {

// The places of each word.
using Index = std::map<std::string, std::vector<std::size_t>>;

Index index_of(const std::string& text) {
  Index index;
  std::istringstream words(text);
  std::size_t place = 0;
  for (std::string word; words >> word;) index[word].push_back(place++);
  return index;
}

class Document {
 public:
  explicit Document(const std::string& text) {
    const freehold::HeapScope scope(heap_);  // this thread, until the end of the block
    index_ = new Index(index_of(text));
  }
  // Ends the index with all that it holds, by a call for each 64 KiB; no destructor of it runs.
  ~Document() { heap_.release_all(freehold::heap::HeldBlocks::kEnd); }
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  [[nodiscard]] std::size_t places_of(const std::string& word) const { return index_->at(word).size(); }
  [[nodiscard]] std::size_t blocks() { return heap_.stats().live_objects; }

 private:
  freehold::PrivateHeap heap_{{.name = "document"}};
  Index* index_ = nullptr;
};

}  // namespace

int main() {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "a word that is long enough for a block: " + std::to_string(i % 1000) + ' ';
  std::size_t places = 0, blocks = 0;
  for (int i = 0; i < 10; ++i) {
    Document document(text);
    places += document.places_of("999");
    blocks += document.blocks();
  }
  int heaps = 0;
  freehold::heap::for_each_heap([&heaps](const freehold::heap::HeapStats&) { ++heaps; });
  std::printf("999 stands in %zu places of 10 documents; %zu blocks went, %d heaps are left\n", places, blocks, heaps);
}
