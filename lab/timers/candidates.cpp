// SPDX-License-Identifier: MIT
#include <malloc.h>

#include <utility>

#include "lab/timers/job.hpp"
#include "lab/timers/library_timers.hpp"
#include "lab/timers/own_timers.hpp"
#include "lab/timers/run.hpp"

namespace freehold::lab::timers {
namespace {

template <template <class Locking> class Home>
Report run_alone(const Job& job) {
  return run_on<OwnTimers<Home<timer::SingleThreaded>>>(job);
}
template <template <class Locking> class Home>
Report run_shared(const Job& job) {
  return run_on<OwnTimers<Home<CountedAnyThread>>>(job);
}

// glibc's malloc with a single lock, as the heap of the article's system had.
template <Report (*kRun)(const Job&)>
Report in_one_arena(const Job& job) {
  ::mallopt(M_ARENA_MAX, 1);
  return kRun(job);
}

std::vector<Candidate> make_candidates() {
  std::vector<Candidate> all;
  const auto add = [&all](std::string_view name, std::string source, auto run, auto shared, Kind kind = Kind::kOurs,
                          bool preloads = false) {
    all.push_back({std::string(name), std::move(source), kind, preloads, run, shared});
  };
  constexpr auto kArticle = run_alone<ArticleOnProgramHeap>;
  constexpr auto kArticleShared = run_shared<ArticleOnProgramHeap>;
  add(kArticlesQueue, "the article's queue, a map to pairs of count and deque, on the program's heap: glibc's malloc",
      kArticle, kArticleShared);
  add("article-1-arena", "the same; malloc has a single arena, so one lock for all", in_one_arena<kArticle>,
      in_one_arena<kArticleShared>);
  add("article-freehold", "the same; Freehold is the program's malloc", kArticle, kArticleShared, Kind::kOurs, true);
  constexpr auto kContainers = run_alone<ArticleContainersPrivate>;
  constexpr auto kContainersShared = run_shared<ArticleContainersPrivate>;
  add(kArticlesContainers, "its containers alone on an owner-locked private heap, the rest on the program's", kContainers,
      kContainersShared);
  add("article-containers-1-arena", "the same; malloc has a single arena, so one lock for all", in_one_arena<kContainers>,
      in_one_arena<kContainersShared>);
  add(kArticlesPrivate, "all of it on an owner-locked private heap", run_alone<ArticleOnPrivateHeap>,
      run_shared<ArticleOnPrivateHeap>);
  add(kArticlesScopes,
      "its containers untouched; create and set in a scope of a private heap, Freehold is the program's malloc",
      run_alone<ArticleInScopes>, run_shared<ArticleInScopes>, Kind::kOurs, true);
  add(kArticlesPool, "all of it on the C++ library's private heap, std::pmr::unsynchronized_pool_resource",
      run_alone<ArticleOnPoolResource>, run_shared<ArticleOnPoolResource>);
  if (::create_mspace != nullptr) {
    add(kArticlesMspace, "all of it on an mspace without a lock: dlmalloc, of which PTMalloc is made",
        run_alone<ArticleOnMspace>, run_shared<ArticleOnMspace>);
  }
  add(kArticlesWheel, "the article's wheel, a ring and a set of handles, on the program's heap: glibc's malloc",
      run_alone<ArticleWheelOnProgramHeap>, run_shared<ArticleWheelOnProgramHeap>);
  add(kArticlesContainersWheel, "its set alone on an owner-locked private heap", run_alone<ArticleWheelContainersPrivate>,
      run_shared<ArticleWheelContainersPrivate>);
  add(kArticlesPrivateWheel, "all of it on an owner-locked private heap", run_alone<ArticleWheelOnPrivateHeap>,
      run_shared<ArticleWheelOnPrivateHeap>);
  add(kQueue, "TimerQueue: intrusive nodes", run_alone<IntrusiveQueue>, run_shared<IntrusiveQueue>);
  add(kWheel, "TimerWheel: a hierarchical wheel, ticks of a millisecond", run_alone<Wheel>, run_shared<Wheel>);
  add("wheel-any-thread", "the same, with the policy for any thread", run_shared<Wheel>, nullptr);
  add("libuv", "libuv: uv_timer_t, a binary heap", run_on<UvTimers>, nullptr, Kind::kLibrary);
  add("asio", "Boost.Asio: steady_timer::async_wait, a binary heap", run_on<AsioTimers>, nullptr, Kind::kLibrary);
  add("asio-queue", "the heap inside Boost.Asio by itself (detail::timer_queue)", run_on<AsioQueue>, nullptr,
      Kind::kLibrary);
  add(kBaseline, "no timers, but a line of memory for each", run_on<Lines>, nullptr, Kind::kBaseline);
  return all;
}

}  // namespace

const std::vector<Candidate>& candidates() {
  static const std::vector<Candidate> all = make_candidates();
  return all;
}

bool runs(const Candidate& candidate, Trial test) {
  if (candidate.kind == Kind::kBaseline && test != Trial::kRearm) return false;
  return (test == Trial::kShared ? candidate.run_shared : candidate.run) != nullptr;
}

}  // namespace freehold::lab::timers
