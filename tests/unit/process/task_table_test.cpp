// SPDX-License-Identifier: MIT
// The table's words and layout, in one thread; what threads and crashes do to it is tests/model/task_table_model.cpp's.
#include "freehold/process/table/table_supervision.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "freehold/process/client/client.hpp"
#include "freehold/process/table/shared_memory.hpp"

namespace freehold::process {
namespace {

class TaskTable_Unit : public testing::Test {
 protected:
  void make(const TableShape& shape) {
    memory_ = SharedMemory::create("table", Table::bytes(shape));
    ASSERT_TRUE(memory_.ok());
    Table::create(memory_.data(), shape);
  }
  SharedMemory memory_;
};

TEST_F(TaskTable_Unit, Shapes_ImpossibleOnesAreRefused) {
  EXPECT_EQ(Table::bytes({.entries = 0}), 0u);
  EXPECT_EQ(Table::bytes({.workers = 1024}), 0u);
  EXPECT_EQ(Table::bytes({.clients = 1024}), 0u);
  EXPECT_EQ(Table::bytes({.max_input = 0}), 0u);
  EXPECT_NE(Table::bytes({}), 0u);
}
TEST_F(TaskTable_Unit, Header_OtherVersionOrSize_NotValid) {
  make({});
  EXPECT_TRUE(Table::shape_of(memory_.data(), memory_.bytes()));
  EXPECT_FALSE(Table::shape_of(memory_.data(), memory_.bytes() - 4096));
  ++static_cast<char*>(memory_.data())[8];
  EXPECT_FALSE(Table::shape_of(memory_.data(), memory_.bytes()));
}
TEST_F(TaskTable_Unit, MemoryThatIsNoTable_NeitherShapeNorVersion) {
  make({});
  EXPECT_EQ(Table::version_of(memory_.data(), memory_.bytes()), Table::kVersion);
  EXPECT_FALSE(Table::shape_of(memory_.data(), 8));
  EXPECT_FALSE(Table::version_of(memory_.data(), 8));
  ++static_cast<char*>(memory_.data())[0];
  EXPECT_FALSE(Table::version_of(memory_.data(), memory_.bytes()));
}
TEST_F(TaskTable_Unit, Claims_TheHigherPriorityFirst_TheOldestOfEquals_AfterADeathToo) {
  make({.entries = 200, .max_input = 64, .max_output = 64});
  Table table(memory_.data());
  std::vector<Ticket> tickets;
  for (std::uint32_t i = 0; i < 200; ++i) tickets.push_back(*table.try_acquire(0));
  // In no order of their places, nor are those of one priority: 63 generates all of them.
  std::vector<std::uint32_t> expected[kPriorities];
  for (std::uint32_t time = 0; time < 200; ++time) {
    const std::uint32_t i = time * 63 % 200;
    const unsigned priority = time % kPriorities;
    if (expected[priority].size() == 60) continue;
    table.submit(tickets[i], 0, 1, TaskParameters{.priority = static_cast<Priority>(priority), .submitted = time});
    expected[priority].push_back(i);
  }
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(table.try_claim(1));
  TableSupervision(table).recover_worker(1, {FailureKind::kSignal, 9}, 3);
  for (unsigned priority = 0; priority < kPriorities; ++priority)
    for (const std::uint32_t entry : expected[priority]) {
      const std::optional<Claim> claim = table.try_claim(0);
      ASSERT_TRUE(claim);
      ASSERT_EQ(claim->entry, entry) << priority;
    }
  EXPECT_FALSE(table.try_claim(0));
}
// More tasks wait than are compared: the order is that of the places now and then, but no task is passed by for ever.
TEST_F(TaskTable_Unit, ManyWaitAndMoreCome_TheOldestIsNotPassedForEver) {
  make({.entries = 300, .max_input = 64, .max_output = 64});
  Table table(memory_.data());
  std::uint64_t time = 0;
  std::optional<Ticket> oldest;
  for (std::optional<Ticket> ticket; (ticket = table.try_acquire(0)); ++time) {
    if (ticket->entry == 150) oldest = ticket;
    if (ticket->entry != 150) table.submit(*ticket, 0, 1, TaskParameters{.submitted = 1000 + time});
  }
  table.submit(*oldest, 0, 1, TaskParameters{.submitted = 1});
  unsigned others = 0;
  for (;; ++others) {
    ASSERT_LT(others, 300u);
    const std::optional<Claim> claim = table.try_claim(0);
    ASSERT_TRUE(claim);
    if (claim->entry == 150) break;
    ASSERT_TRUE(table.complete(*claim, 0));
    ASSERT_TRUE(table.drop(Ticket{claim->entry, claim->word.generation()}));
    // Always the same place, and as if it had been there for longer than the others.
    const std::optional<Ticket> again = table.try_acquire_entry(claim->entry, 0);
    ASSERT_TRUE(again);
    table.submit(*again, 0, 1, TaskParameters{.submitted = 2});
  }
}
// Input and output together take more than a page, whichever of them is the large one.
TEST_F(TaskTable_Unit, LargeAreas_EachEndsWithAGuardPage) {
  constexpr std::uint32_t kEntries = 5;
  constexpr std::uint64_t kPage = 4096;
  struct Sizes {
    std::uint64_t input, output;
  };
  for (const auto& [input, output] : {Sizes{64, 64}, Sizes{64, 8192}, Sizes{8192, 64}, Sizes{kPage / 2, kPage / 2 + 1}}) {
    make({.entries = kEntries, .max_input = input, .max_output = output});
    Table table(memory_.data());
    std::set<const std::byte*> guards;
    table.layout().for_each_guard([&](const std::byte* page, std::size_t bytes) {
      EXPECT_EQ(bytes, kPage);
      EXPECT_TRUE(guards.insert(page).second);
    });
    const bool large = input + output > kPage;
    ASSERT_EQ(guards.size(), large ? 1 + 2 * kEntries : 1u) << input << ", " << output;
    for (std::uint32_t i = 0; large && i < kEntries; ++i) {
      const auto* const in = reinterpret_cast<const std::byte*>(table.layout().input(i));
      const auto* const out = reinterpret_cast<const std::byte*>(table.layout().output(i));
      const auto behind_input = guards.lower_bound(in + input), behind_output = guards.lower_bound(out + output);
      ASSERT_TRUE(behind_input != guards.end() && behind_output != guards.end());
      EXPECT_EQ(*behind_input + kPage, out);
      EXPECT_LT(*behind_output, out + output + kPage);
    }
  }
}
// A length that a component has overwritten is not believed.
TEST_F(TaskTable_Unit, ResultLongerThanItsArea_IsCorruptAndTheClientSuspectsDamage) {
  constexpr std::uint64_t kMost = 64;
  make({.entries = 2, .max_input = 64, .max_output = kMost});
  Client client(memory_, 0, -1);
  for (const std::uint64_t bytes : {kMost, kMost + 1, ~std::uint64_t{0}}) {
    Future future = client.submit("x");
    const std::optional<Claim> claim = client.table().try_claim(0);
    ASSERT_TRUE(claim);
    ASSERT_TRUE(client.table().complete(*claim, bytes));
    const Result result = future.get();
    EXPECT_EQ(result.ok(), bytes == kMost) << bytes;
    EXPECT_EQ(client.take_damage_suspicion(), bytes != kMost) << bytes;
    if (bytes != kMost) {
      EXPECT_EQ(result.error(), (Failure{FailureKind::kCorrupt, 0}));
    }
  }
}

// A supervisor's knowledge; it notes which clients it was asked for.
struct Known {
  [[nodiscard]] bool closed() const { return is_closed; }
  [[nodiscard]] std::uint32_t epoch() const { return of_epoch; }
  static bool lasts(std::uint32_t, TaskWord) { return true; }
  [[nodiscard]] bool is_live(unsigned) const { return lives; }
  [[nodiscard]] bool has_another(unsigned) const { return runs_another; }
  bool is_connected(unsigned client) {
    asked.insert(client);
    return connected;
  }
  bool is_closed = false, lives = true, runs_another = false, connected = true;
  std::uint32_t of_epoch = 0;
  std::set<unsigned> asked;
};
TEST_F(TaskTable_Unit, TableUnlikeWhatTheSupervisorKnows_DamageAndWhere) {
  constexpr unsigned kWorkers = 3;
  make({.entries = 2, .workers = kWorkers, .max_input = 8, .max_output = 8});
  Table table(memory_.data());
  TableSupervision supervision(table);
  const auto damage = [&](Known known) {
    const char* const found = supervision.find_damage(known);
    return std::string(found != nullptr ? found : "");
  };
  EXPECT_EQ(damage({}), "");
  EXPECT_EQ(damage({.is_closed = true, .asked = {}}), "whether it is closed");
  EXPECT_EQ(damage({.of_epoch = 1, .asked = {}}), "its epoch");
  supervision.close();
  EXPECT_EQ(damage({}), "whether it is closed");
  EXPECT_EQ(damage({.is_closed = true, .asked = {}}), "");
  supervision.reset(1, 0);
  EXPECT_EQ(damage({}), "");
  table.submit(*table.try_acquire(0), 0, 1);
  EXPECT_EQ(damage({.connected = false, .asked = {}}), "a task's client");
  const Claim claim = *table.try_claim(kWorkers - 1);
  EXPECT_EQ(damage({}), "");
  EXPECT_EQ(damage({.lives = false, .asked = {}}), "a task's worker");
  EXPECT_EQ(damage({.runs_another = true, .asked = {}}), "a task's worker");
  ASSERT_TRUE(table.complete(claim, 0));
  ASSERT_TRUE(table.drop({claim.entry, claim.word.generation()}));
  table.submit(*table.try_acquire(0), 0, 1);
  ASSERT_TRUE(table.try_claim(kWorkers));
  EXPECT_EQ(damage({}), "a task's worker");
}
// A bit beyond the entries or the workers, in whichever word: it is found, and until then no index leaves the table.
TEST_F(TaskTable_Unit, BitsBeyondTheShape_DamageAndNoEntryOfThem) {
  constexpr std::uint32_t kEntries = 2;
  make({.entries = kEntries, .workers = 3, .max_input = 8, .max_output = 8});
  Table table(memory_.data());
  TableSupervision supervision(table);
  Known known;
  const auto* const areas = reinterpret_cast<std::uint64_t*>(table.layout().input(0));
  int found = 0;
  for (auto* word = static_cast<std::uint64_t*>(memory_.data()); word < areas; ++word) {
    constexpr std::uint64_t kBeyond = std::uint64_t{1} << 63;
    *word |= kBeyond;
    const char* const damage = supervision.find_damage(known);
    const bool in_bits = damage != nullptr && std::string_view(damage) == "its bits";
    if (in_bits) {
      ++found;
      const std::optional<Ticket> ticket = table.try_acquire(0);
      ASSERT_TRUE(ticket && ticket->entry < kEntries);
      table.submit(*ticket, 0, 1);
      *word |= kBeyond;
      supervision.help_stuck([](std::uint32_t, TaskWord) { return true; });
      const std::optional<Claim> claim = table.try_claim(0);
      ASSERT_TRUE(claim && claim->entry < kEntries);
      ASSERT_TRUE(table.complete(*claim, 0));
      ASSERT_TRUE(table.drop({claim->entry, claim->word.generation()}));
    }
    *word &= ~kBeyond;
  }
  EXPECT_EQ(found, 2 + static_cast<int>(kPriorities)) << "free, ready of each priority, asleep";
  EXPECT_EQ(supervision.find_damage(known), nullptr);
}
// A client's number that was overwritten is compared with the shape before anybody looks that client up.
TEST_F(TaskTable_Unit, TaskOfAClientBeyondTheShape_DamageAndNobodyAsksForIt) {
  constexpr std::uint32_t kClients = 4;
  make({.entries = 2, .clients = kClients, .max_input = 8, .max_output = 8});
  Table table(memory_.data());
  TableSupervision supervision(table);
  for (const unsigned client : {kClients - 1, kClients, 1000u}) {
    Known known;
    const Ticket ticket = *table.try_acquire(client);
    EXPECT_EQ(supervision.find_damage(known) != nullptr, client >= kClients) << client;
    EXPECT_EQ(known.asked, client < kClients ? std::set{client} : std::set<unsigned>{});
    ASSERT_TRUE(table.drop(ticket));
  }
}

}  // namespace
}  // namespace freehold::process
