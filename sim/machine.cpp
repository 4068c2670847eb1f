// SPDX-License-Identifier: MIT
#include "sim/machine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "freehold/base/check.hpp"

namespace freehold::sim {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
constexpr std::size_t kTraceLines = 400;

Machine* g_active = nullptr;
std::uint64_t g_executions = 0;
std::uint64_t g_epochs = 0;  // epochs of all threads so far

// The per_thread() objects of all types, one after the other by thread.
struct PerThread {
  std::byte* objects;
  std::size_t bytes_each;
};
std::vector<PerThread>& per_thread_objects() {
  static std::vector<PerThread> all;
  return all;
}
// A thread's storage is gone with the thread.
void forget_per_thread(unsigned thread) noexcept {
  for (const PerThread& type : per_thread_objects())
    std::memset(type.objects + thread * type.bytes_each, 0, type.bytes_each);
}
// fail() outside of the threads and the check: there is nothing to switch to, so it unwinds the scenario.
struct SetUpFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using machine::hex, machine::mix, machine::place;

}  // namespace

namespace machine {

bool is_per_thread(const void* at) noexcept {
  for (const PerThread& type : per_thread_objects()) {
    const auto offset = reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(type.objects);
    if (offset < type.bytes_each * (kMaxThreads + 1)) return true;
  }
  return false;
}

std::string hex(std::uint64_t value) {
  char digits[19];
  std::snprintf(digits, sizeof digits, "%#llx", static_cast<unsigned long long>(value));
  return digits;
}

std::string place(const Site& site) {
  const char* slash = std::strrchr(site.file_name(), '/');
  return std::string(slash != nullptr ? slash + 1 : site.file_name()) + ":" + std::to_string(site.line());
}

}  // namespace machine

constinit bool report::threads_run = false;

Machine::Machine(const Options& options, Chooser& chooser, bool tracing)
    : options_(options), chooser_(chooser), tracing_(tracing), checker_(kStackBytes) {}

Machine::~Machine() = default;

Machine* Machine::active() noexcept { return g_active; }

void Machine::fatal_handler(base::HeapError error, const void*) {
  g_active->message_ = std::string("fatal: ") + base::text(error);
  g_active->stop(Failure::kCheck);
}

void Machine::assertion_handler(const char* expression, const char* file, int line) {
  g_active->message_ = std::string("assertion failed: ") + expression + " at " + file + ":" + std::to_string(line);
  g_active->stop(Failure::kCheck);
}

void Machine::execute(const std::function<void(Execution&)>& scenario) {
  phase_ = Phase::kSetUp;
  steps_ = 0;
  past_phases_ = 0;
  answers_.clear();
  pruned_ = false;
  failure_ = Failure::kNone;
  trace_.clear();
  names_.clear();
  g_active = this;
  ++g_executions;
  outside_epoch_ = ++g_epochs;
  outside_at_exit_ = {};
  outside_cpu_ = 0;
  const base::FatalHandler former_fatal = base::set_fatal_handler(&Machine::fatal_handler);
  const base::AssertionHandler former_assertion = base::set_assertion_handler(&Machine::assertion_handler);
  Execution run;
  try {
    scenario(run);
    if (!run.checked_ && failure_ == Failure::kNone) throw SetUpFailed("the scenario never called check()");
  } catch (const SetUpFailed& error) {
    failure_ = Failure::kScenario;
    message_ = error.what();
  } catch (const std::exception& error) {
    failure_ = Failure::kScenario;
    message_ = std::string("exception in the scenario's set-up: ") + error.what();
  }
  run.clear();
  base::set_fatal_handler(former_fatal);
  base::set_assertion_handler(former_assertion);
  g_active = nullptr;
}

void Machine::run(Execution& run, void* final_check, void (*call)(void*)) {
  if (failure_ != Failure::kNone || pruned_) return;  // an earlier phase ended the execution
  const MayLeak fibres_may_be_abandoned;
  spawned_ = run.count_;
  threads_epoch_ = ++g_epochs;
  locations_.clear();
  cells_.clear();
  cpus_ = {};
  sc_count_ = 0;
  sc_seen_ = sc_before_ = Lanes{};
  sc_fence_hash_ = sc_sum_ = 0;
  runnable_ = (1u << spawned_) - 1;
  paused_ = waiting_ = ended_ = dead_ = 0;
  crashes_left_ = options_.crashes;
  while (threads_.size() < spawned_) threads_.push_back(std::make_unique<Thread>(kStackBytes));
  for (unsigned i = 0; i < spawned_; ++i) {
    Thread& thread = *threads_[i];
    thread.now = thread.on_acquire = thread.on_release = View{};
    thread.clock = 0;
    thread.hash = mix(past_phases_, i + 1);
    thread.body = run.bodies_[i].storage;
    thread.call = run.bodies_[i].call;
    thread.at_exit = {};
    thread.cpu = options_.cpus == 0 ? i : i % options_.cpus;
    thread.in_sequence = false;
    thread.fibre.start(&Machine::thread_main, this);
  }
  if (spawned_ != 0) {
    phase_ = Phase::kThreads;
    report::threads_run = true;
    current_ = kMaxThreads;  // no thread ran last
    current_ = ask_schedule(runnable_);
    Fibre::change(caller_, self().fibre);
    report::threads_run = false;
  }
  if (failure_ == Failure::kNone && !pruned_) {
    past_phases_ = state();
    final_check_ = final_check;
    final_call_ = call;
    phase_ = Phase::kCheck;
    checker_.start(&Machine::check_main, this);
    Fibre::change(caller_, checker_);
  }
  if (failure_ != Failure::kNone || pruned_) ++g_executions;  // abandoned threads leave locks behind
  phase_ = Phase::kSetUp;
}

void Machine::end_outside_thread() noexcept {
  outside_at_exit_.run();
  outside_at_exit_ = {};
  forget_per_thread(kMaxThreads);
  outside_epoch_ = ++g_epochs;
}

// Returns whether the body came to its end; if not, message_ says what it threw.
bool Machine::guarded(void (*call)(void*), void* body) {
  try {
    call(body);
    return true;
  } catch (const std::exception& error) {
    message_ = std::string("exception: ") + error.what();
    return false;  // and out of the handler, before the fibre is abandoned
  }
}

void Machine::thread_main(void* machine) {
  auto& m = *static_cast<Machine*>(machine);
  if (!m.guarded(m.self().call, m.self().body)) m.stop(Failure::kCheck);
  m.self().at_exit.run();
  forget_per_thread(m.current_);
  m.end();
  std::terminate();  // a thread that has ended is not woken
}

void Machine::check_main(void* machine) {
  auto& m = *static_cast<Machine*>(machine);
  if (!m.guarded(m.final_call_, m.final_check_)) m.stop(Failure::kCheck);
  Fibre::change(m.checker_, m.caller_);
}

void Machine::fail(std::string message) {
  message_ = std::move(message);
  stop(Failure::kCheck);
}

// Ends the execution because of message_. The running fibre is abandoned, so its callers hold no heap memory here.
void Machine::stop(Failure kind) {
  if (phase_ == Phase::kSetUp) throw SetUpFailed(message_);
  failure_ = kind;
  if (tracing_) trace_.push_back("==> " + message_);
  Fibre::change(phase_ == Phase::kCheck ? checker_ : self().fibre, caller_);
  std::terminate();  // it is not resumed
}

// ---- scheduling

std::uint64_t Machine::state() const noexcept {
  std::uint64_t sum = past_phases_;
  for (unsigned i = 0; i < spawned_; ++i) sum += mix(threads_[i]->hash, i + 1);
  return sum;
}

unsigned Machine::ask_schedule(std::uint32_t enabled) {
  if (std::has_single_bit(enabled)) return static_cast<unsigned>(std::countr_zero(enabled));
  const unsigned next = chooser_.schedule(current_, enabled);
  answers_.push_back(static_cast<std::uint8_t>(next));
  return next;
}

unsigned Machine::choose(Choice what, unsigned count) {
  const unsigned answer = chooser_.choose(what, count);
  answers_.push_back(static_cast<std::uint8_t>(answer));
  return answer;
}

void Machine::step() {
  if (++steps_ <= options_.steps && self().clock < kNever - 8 && sc_count_ < kNever - 8) return;
  message_ = "livelock: more than " + std::to_string(steps_ - 1) + " steps";
  stop(Failure::kLivelock);
}

void Machine::point() {
  step();
  hand_over(runnable_ & ~paused_);
  paused_ = 0;  // this thread takes a step now, so a thread that waits for one may go on
  perhaps_die();
}

// A thread may stop for ever wherever it may be preempted.
void Machine::perhaps_die() {
  if (crashes_left_ == 0 || (options_.mortal >> current_ & 1) == 0 || choose(Choice::kCrash, 2) == 0) return;
  --crashes_left_;
  dead_ |= 1u << current_;
  self().hash = mix(self().hash, 5);
  if (tracing_) trace_.push_back("T" + std::to_string(current_) + " dies");
  end();
}

void Machine::end() {
  tick();  // its writes since its last atomic access belong to the past of a thread that learns of its end
  ended_ |= 1u << current_;
  runnable_ &= ~(1u << current_);
  for (unsigned i = 0; i < spawned_; ++i) {
    if ((waiting_ >> i & 1) == 0 || threads_[i]->waits_on != &ended_) continue;
    if ((threads_[i]->waits_for_end_of >> current_ & 1) == 0) continue;
    waiting_ &= ~(1u << i);
    runnable_ |= 1u << i;
  }
  leave();
}

void Machine::hand_over(std::uint32_t enabled) {
  if (chooser_.visited(mix(state(), current_ | paused_ << 8))) {
    pruned_ = true;
    Fibre::change(self().fibre, caller_);
  }
  const unsigned next = ask_schedule(enabled);
  if (next == current_) return;
  Thread& from = self();
  current_ = next;
  arrive_on_cpu(self());
  Fibre::change(from.fibre, self().fibre);
}

void Machine::leave() {
  if (runnable_ == 0) {
    if (waiting_ != 0) {
      message_ = describe_deadlock();
      stop(Failure::kDeadlock);
    }
    Fibre::change(self().fibre, caller_);
  }
  if ((runnable_ & ~paused_) == 0) paused_ = 0;
  hand_over(runnable_ & ~paused_);
}

std::string Machine::describe_deadlock() const {
  std::string text = "deadlock:";
  for (unsigned i = 0; i < spawned_; ++i) {
    if ((waiting_ >> i & 1) != 0) text += " T" + std::to_string(i) + " waits at " + place(threads_[i]->waits_at) + ";";
  }
  text.back() = '.';
  return text;
}

void Machine::pause() {
  step();
  self().hash = mix(self().hash, 1);
  paused_ |= 1u << current_;
  if ((runnable_ & ~paused_) == 0) paused_ = 1u << current_;  // everybody has waited for somebody: begin again
  if (const std::uint32_t others = runnable_ & ~paused_; others != 0) hand_over(others);
  paused_ &= ~(1u << current_);
}

// ---- waiting

void Machine::sleep(const void* on, const Site& site) {
  self().waits_on = on;
  self().waits_at = site;
  runnable_ &= ~(1u << current_);
  waiting_ |= 1u << current_;
  leave();
}

// Waits until threads of `of` have ended that are not in `known`; all that have. Who learns of an end has all of that
// thread's doings in its past, as after waitpid.
std::uint32_t Machine::await_end(std::uint32_t known, std::uint32_t of, const Site& site) {
  point();
  if ((ended_ & of & ~known) == 0) {
    self().waits_for_end_of = of & ~known;
    self().hash = mix(self().hash, 6);  // asleep is another state than about to ask
    sleep(&ended_, site);
  }
  tick();
  Thread& thread = self();
  for (unsigned i = 0; i < spawned_; ++i) {
    if ((ended_ >> i & 1) == 0) continue;
    thread.now.join(threads_[i]->now);
    thread.hash = mix(thread.hash, threads_[i]->hash + i);
  }
  if (tracing_) note(site, "await_end", nullptr, hex(ended_));
  return ended_;
}

void Machine::wait(const void* at, unsigned bytes, std::uint64_t old, const Site& site) {
  point();
  Location& location = locate(at, bytes);
  tick();
  Thread& thread = self();
  Store& store = location.back(0);
  read(store, Order::relaxed);
  const bool sleeps =
      static_cast<std::uint32_t>(store.value) == static_cast<std::uint32_t>(old) && choose(Choice::kRead, 2) == 0;
  if (tracing_) note(site, "wait", at, sleeps ? "sleeps" : "returns at once, " + hex(store.value));
  if (!sleeps) return;
  thread.hash = mix(thread.hash, location.waiting);
  location.waiting = mix(location.waiting, thread.hash);
  sleep(at, site);
}

void Machine::notify(void* at, unsigned bytes, bool all, const Site& site) {
  point();
  Location& location = locate(at, bytes);
  tick();
  Thread& thread = self();
  thread.hash = mix(thread.hash, location.waiting);
  location.waiting = mix(location.waiting, thread.hash);
  std::uint32_t sleepers = 0;
  for (std::uint32_t rest = waiting_; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(rest));
    if (threads_[i]->waits_on == at) sleepers |= 1u << i;
  }
  if (!all && std::popcount(sleepers) > 1) {
    for (unsigned skip = choose(Choice::kNotified, static_cast<unsigned>(std::popcount(sleepers))); skip > 0; --skip) {
      sleepers &= sleepers - 1;
    }
    sleepers &= ~sleepers + 1;
  }
  for (std::uint32_t rest = sleepers; rest != 0; rest &= rest - 1) {
    Thread& woken = *threads_[static_cast<unsigned>(std::countr_zero(rest))];
    woken.hash = mix(woken.hash, thread.hash);
  }
  waiting_ &= ~sleepers;
  runnable_ |= sleepers;
  if (tracing_) note(site, all ? "notify_all" : "notify_one", at, "wakes " + std::to_string(std::popcount(sleepers)));
}

bool Machine::decide() {
  if (options_.decide != Decide::kBoth) return options_.decide == Decide::kAlternative;
  const unsigned answer = choose(Choice::kDecide, 2);
  self().hash = mix(self().hash, 4 + answer);
  if (tracing_)
    trace_.push_back("T" + std::to_string(current_) + " decides for " + (answer != 0 ? "the alternative" : "the value"));
  return answer != 0;
}

// ---- traces

void Machine::name(const void* at, const char* text) {
  if (tracing_) names_[at] = text;
}

std::string Machine::label(const void* at) {
  if (const auto named = names_.find(at); named != names_.end()) return named->second;
  if (locations_.contains(at)) return "atomic " + std::to_string(locations_.at(at).first->number);
  return "var at " + hex(reinterpret_cast<std::uintptr_t>(at));
}

void Machine::note(const Site& site, const char* what, const void* at, const std::string& rest) {
  char line[256];
  std::snprintf(line, sizeof line, "T%u  %-22s %-10s %-12s %s", current_, place(site).c_str(), what,
                at == nullptr ? "" : label(at).c_str(), rest.c_str());
  trace_.push_back(line);
}

std::string Machine::trace() const {
  std::string text;
  const std::size_t skipped = trace_.size() > kTraceLines ? trace_.size() - kTraceLines : 0;
  if (skipped != 0) text = "… " + std::to_string(skipped) + " lines\n";
  for (std::size_t i = skipped; i < trace_.size(); ++i) text += trace_[i] + "\n";
  return text;
}

// ---- what SimAtomics reports

namespace report {
std::uint64_t load(const void* at, unsigned bytes, Order order, const Site& site) {
  return g_active->load(at, bytes, order, site);
}
void store(void* at, unsigned bytes, std::uint64_t value, Order order, const Site& site) {
  g_active->store(at, bytes, value, order, site);
}
std::uint64_t modify(void* at, unsigned bytes, Modify how, std::uint64_t operand, Order order, const Site& site) {
  return g_active->modify(at, bytes, how, operand, order, site);
}
bool compare_exchange(void* at, unsigned bytes, std::uint64_t& expected, std::uint64_t desired, bool weak, Order success,
                      Order failure, const Site& site) {
  return g_active->compare_exchange(at, bytes, expected, desired, weak, success, failure, site);
}
void construct(void* at, unsigned bytes) { g_active->construct(at, bytes); }
void var(const void* at, bool write, const Site& site) { g_active->var(at, write, site); }
void fence(Order order, const Site& site) { g_active->fence(order, site); }
void pause() { g_active->pause(); }
void at_thread_exit(sync::ExitCall call) {
  if (g_active != nullptr) g_active->at_thread_exit(call);
}
void heavy_fence(const Site& site) { g_active->heavy_fence(site); }
unsigned cpu() { return g_active != nullptr ? g_active->cpu() : 0; }
unsigned cpus() { return g_active != nullptr ? g_active->cpus() : 0; }
unsigned sequence_begin() { return g_active != nullptr ? g_active->sequence_begin() : 0; }
bool sequence_store(void* at, unsigned bytes, std::uint64_t value, bool commits, const Site& site) {
  return g_active->sequence_store(at, bytes, value, commits, site);
}
bool sequence_goes_on() { return g_active->sequence_goes_on(); }
void sequence_end() { g_active->sequence_end(); }
void keep_per_thread(std::byte* objects, std::size_t bytes_each) { per_thread_objects().push_back({objects, bytes_each}); }
unsigned thread() { return threads_run ? g_active->thread() : kMaxThreads; }
std::uint64_t execution() { return g_executions; }
std::uint64_t epoch() { return g_active != nullptr ? g_active->epoch() : 0; }
void wait(const void* at, unsigned bytes, std::uint64_t old, const Site& site) { g_active->wait(at, bytes, old, site); }
void notify(void* at, unsigned bytes, bool all, const Site& site) { g_active->notify(at, bytes, all, site); }
bool decide() { return g_active->decide(); }
}  // namespace report

}  // namespace freehold::sim
