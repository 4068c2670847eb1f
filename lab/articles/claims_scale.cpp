// SPDX-License-Identifier: MIT
// Articles 4 and 5.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "lab/articles/findings.hpp"

namespace freehold::lab::articles {
namespace {
using namespace scale;

class Scaling {
 public:
  explicit Scaling(const scale::Results& results) : results_(results) {
    // As many workers as CPUs, or as near as was measured.
    for (const std::uint32_t n : results.settings.workers) {
      if (n > 1 && n <= results.machine.cpus) most_ = n;
      if (over_ == 0 && n > results.machine.cpus) over_ = n;
    }
  }

  [[nodiscard]] std::uint32_t most() const { return most_; }
  // The fewest workers of which one has no CPU; 0: not measured.
  [[nodiscard]] std::uint32_t over() const { return over_; }
  [[nodiscard]] Sets speed(Workload test, Mode mode, std::string_view name, std::uint32_t workers) const {
    return speeds_of(results_, {test, mode, name, workers});
  }
  // Milliseconds.
  [[nodiscard]] Sets time(Workload test, Mode mode, std::string_view name, std::uint32_t workers) const {
    return combine({times_of(results_.find({test, mode, name, workers}))}, [](const auto& v) { return 1e3 * v[0]; });
  }
  // Nanoseconds of time for an operation.
  [[nodiscard]] Sets each(Workload test, Mode mode, std::string_view name, std::uint32_t workers) const {
    const Series* const series = results_.find({test, mode, name, workers});
    return sets_of(series, [&](const Report& report) {
      return static_cast<double>(report.elapsed_ns) / static_cast<double>(series->job.operations());
    });
  }
  // Nanoseconds of all workers' CPU time for an operation.
  [[nodiscard]] Sets cpu(Workload test, Mode mode, std::string_view name, std::uint32_t workers) const {
    const Series* const series = results_.find({test, mode, name, workers});
    return sets_of(series, [&](const Report& report) {
      return static_cast<double>(report.cpu_ns) / static_cast<double>(series->job.operations());
    });
  }
  // Milliseconds for one iteration, the article's document, of which every worker does one at a time.
  [[nodiscard]] Sets document(Workload test, Mode mode, std::string_view name, std::uint32_t workers) const {
    return combine({time(test, mode, name, workers)},
                   [&](const auto& v) { return v[0] * workers / results_.settings.iterations; });
  }
  // Returns the time of the same work, over all threads.
  [[nodiscard]] std::string nanoseconds(Workload test, std::string_view name, std::uint32_t workers) const {
    return figure_text(nanoseconds_per_operation(results_.find({test, Mode::kThreads, name, workers})));
  }

 private:
  const scale::Results& results_;
  std::uint32_t most_ = 2;
  std::uint32_t over_ = 0;
};

// A finding of freehold scale as an article's claim.
void take_over(const scale::Results& results, Claims& claims, std::string_view id, std::string statement,
               std::string limits) {
  const scale::Verdict verdict = verdict_of(results);
  const auto found = std::ranges::find(verdict.claims, id, &lab::Claim::id);
  articles::Claim claim;
  if (found != verdict.claims.end()) static_cast<lab::Claim&>(claim) = *found;
  claim.id = id;
  claim.statement = std::move(statement);
  claim.limits = std::move(limits);
  if (results.machine.cpus == 1) claim.outcome = Outcome::kNotTestable;
  claims.add(std::move(claim));
}

constexpr const char* kSystem = "system";
constexpr const char* kArticlesAllocator = "owner-article";

void controls(const Scaling& scaling, Claims& claims) {
  const std::uint32_t n = scaling.most();
  const Sets compute = scaling.speed(Workload::kCompute, Mode::kThreads, kSystem, n);
  claims.at_least({"compute-scales", "threads that compute and share nothing scale (test 1)",
                   fmt::format("{} threads are {} times as fast as one", n, figure_text(compute)),
                   "other work on the machine lowers the figure", 2},
                  compute, 0.85 * n);
  const Sets memory = scaling.speed(Workload::kMemory, Mode::kThreads, kSystem, n);
  claims.at_least({"memory-scales", "reading and writing memory scales nearly as well (test 4)",
                   fmt::format("{} times as fast, computing {}", figure_text(memory), figure_text(compute)),
                   "relative to computing; all threads have the same blocks", 2},
                  quotient(memory, compute), kScales);
  const Sets own_memory = scaling.speed(Workload::kOwnMemory, Mode::kThreads, kSystem, n);
  claims.at_least({"own-memory-scales", "a question of ours: and with separate blocks for each thread?",
                   fmt::format("{} times as fast, computing {}", figure_text(own_memory), figure_text(compute)),
                   "relative to computing; 32 MiB for each thread", 2},
                  quotient(own_memory, compute), kScales);
  const Sets mixed = scaling.speed(Workload::kMixed, Mode::kThreads, kSystem, n);
  claims.at_most(
      {"mixed-between", "allocating and computing mixed gains from the second processor, but less (test 3)",
       fmt::format("{} times as fast, computing {}", figure_text(mixed), figure_text(compute)), "relative to computing", 2},
      quotient(mixed, compute), 0.9);
  const Sets worse = quotient(scaling.time(Workload::kMixed, Mode::kThreads, kSystem, 2),
                              scaling.time(Workload::kMixed, Mode::kThreads, kSystem, 4));
  claims.at_most({"mixed-degrades", "from the third thread on it gets slower, as allocating alone does",
                  fmt::format("4 threads are {} times as fast as 2", figure_text(worse)), "the mixed test", 2},
                 worse, 0.95);
}

// More workers than processors. `cpus`: of the machine.
void beyond_the_cpus(const Scaling& scaling, unsigned cpus, Claims& claims) {
  const std::uint32_t n = scaling.most(), over = scaling.over();
  const std::string all_have_one = fmt::format("the most workers are 6, which have a CPU each on {}", cpus);
  constexpr const char* kMoreStatement = "more workers than processors gain nothing";
  constexpr const char* kDocumentStatement =
      "but each document takes longer, in proportion to the workers (twice as long with four processes)";
  if (over == 0) {
    claims.not_testable("no-more-workers", kMoreStatement, all_have_one);
    claims.not_testable("document-time", kDocumentStatement, all_have_one);
  } else {
    const Sets more = quotient(scaling.time(Workload::kCompute, Mode::kThreads, kSystem, n),
                               scaling.time(Workload::kCompute, Mode::kThreads, kSystem, over));
    claims.at_most({"no-more-workers", kMoreStatement,
                    fmt::format("{} threads are {} times as fast as {}", over, figure_text(more), n), "computing", 2},
                   more, 1.1);
    const auto document = [&](std::uint32_t workers) {
      return scaling.document(Workload::kAllocate, Mode::kProcesses, kSystem, workers);
    };
    claims.at_least({"document-time", kDocumentStatement,
                     fmt::format("{} ms a document with {} processes, {} with {}", figure_text(document(n)), n,
                                 figure_text(document(over)), over),
                     fmt::format("lists; three quarters of the proportion {}:{} count", over, n), 2},
                    quotient(document(over), document(n)), 0.75 * over / n);
  }
  const auto six = [&](Mode mode) {
    return quotient(scaling.time(Workload::kAllocate, mode, kSystem, 4),
                    scaling.time(Workload::kAllocate, mode, kSystem, 6));
  };
  constexpr const char* kThreadsStatement = "six threads that allocate are faster than four";
  constexpr const char* kProcessesStatement = "six processes that allocate are hardly faster than four";
  if (cpus > 4) {
    const std::string why = fmt::format("the article's machine ran four at once; on {} CPUs six have more of them", cpus);
    claims.not_testable("six-threads", kThreadsStatement, why);
    claims.not_testable("six-processes", kProcessesStatement, why);
    return;
  }
  const auto words = [&](const char* id, const char* statement, Mode mode) {
    return Claims::Words{id, statement, fmt::format("6 {} are {} times as fast as 4", name_of(mode), figure_text(six(mode))),
                         fmt::format("{} CPUs", cpus), 2};
  };
  claims.at_least(words("six-threads", kThreadsStatement, Mode::kThreads), six(Mode::kThreads), 1.05);
  claims.at_most(words("six-processes", kProcessesStatement, Mode::kProcesses), six(Mode::kProcesses), 1.1);
}

// A remedy of the article's that allocates in another way, under this malloc.
void remedy(const Scaling& scaling, Claims& claims, Workload test, const std::string& id, const char* statement,
            const char* limits, const char* subject = kSystem) {
  const std::uint32_t n = scaling.most();
  const Sets shared = scaling.cpu(Workload::kAllocate, Mode::kThreads, kSystem, 1),
             own = scaling.cpu(test, Mode::kThreads, subject, 1);
  claims.at_least(
      {id + "-faster", statement,
       fmt::format("{} ns of CPU for a node, {} with the system's malloc", figure_text(own), figure_text(shared)), limits},
      quotient(shared, own), 1.25);
  const Sets scales = scaling.speed(test, Mode::kThreads, subject, n),
             compute = scaling.speed(Workload::kCompute, Mode::kThreads, kSystem, n);
  claims.at_least(
      {id + "-scales", "and threads scale with it, since nothing is synchronised",
       fmt::format("{} threads are {} times as fast as one, computing {}", n, figure_text(scales), figure_text(compute)),
       "relative to computing", 2},
      quotient(scales, compute), kScales);
}

// On a single processor: the most workers against one, all kept on one CPU. By CPU time. `all_cpus`: the same on all of
// them.
void one_processor(const Scaling& scaling, std::uint32_t most, const Scaling& all_cpus, Claims& claims) {
  const auto add = [&](std::string id, std::string statement, Workload test, Mode mode, bool is_loss,
                       std::uint32_t workers) {
    const Sets alone = scaling.cpu(test, mode, kSystem, 1), all = scaling.cpu(test, mode, kSystem, workers);
    Claims::Words words{std::move(id), std::move(statement),
                        fmt::format("{} ns of CPU for a {} with one worker, {} with {}", figure_text(alone),
                                    operation_name(test), figure_text(all), workers),
                        "all workers are kept on one CPU", 1};
    if (is_loss)
      claims.at_least(std::move(words), quotient(all, alone), 1.1);
    else
      claims.at_most(std::move(words), quotient(all, alone), 1.1);
  };
  add("one-cpu-compute", "on a single processor, threads that compute take the same time whatever their number",
      Workload::kCompute, Mode::kThreads, false, most);
  add("one-cpu-memory", "so do threads that read and write the same memory", Workload::kMemory, Mode::kThreads, false, most);
  add("one-cpu-own-memory", "a question of ours: with separate memory, does each take the caches from the others?",
      Workload::kOwnMemory, Mode::kThreads, true, most);
  add("one-cpu-allocate", "threads that allocate lose there by cache misses", Workload::kAllocate, Mode::kThreads, true,
      most);
  add("one-cpu-mixed", "so do threads that allocate and compute", Workload::kMixed, Mode::kThreads, true, most);
  for (const std::uint32_t few : {2U, 3U})
    add(fmt::format("one-cpu-{}", few), fmt::format("{} threads that allocate take there hardly longer than one", few),
        Workload::kAllocate, Mode::kThreads, false, few);
  add("one-cpu-processes", "processes that allocate lose nothing", Workload::kAllocate, Mode::kProcesses, false, most);
  const auto loss = [&](std::uint32_t workers) {
    return combine({quotient(scaling.cpu(Workload::kAllocate, Mode::kThreads, kSystem, workers),
                             scaling.cpu(Workload::kAllocate, Mode::kThreads, kSystem, 1))},
                   [](const auto& v) { return std::max(0.0, v[0] - 1) + 0.01; });
  };
  claims.at_least(
      {"one-cpu-quadratic", "the losses grow with the square of the threads",
       fmt::format("{} of the time with 2 threads, {} with {}", figure_text(loss(2)), figure_text(loss(most)), most),
       fmt::format("lists; more than {} times the loss counts, in proportion; 0.01 is added to both", most / 2)},
      quotient(loss(most), loss(2)), most / 2.0);
  const Sets on_two = all_cpus.each(Workload::kAllocate, Mode::kThreads, kSystem, 2),
             on_one = scaling.each(Workload::kAllocate, Mode::kThreads, kSystem, 2);
  claims.at_least({"slower-than-on-one", "two threads that allocate are slower on two processors than on a single one",
                   fmt::format("{} ns a node on two, {} on one", figure_text(on_two), figure_text(on_one)), "lists", 2},
                  quotient(on_two, on_one), 1);
  const Sets one = scaling.document(Workload::kCompute, Mode::kThreads, kSystem, 1),
             four = scaling.document(Workload::kCompute, Mode::kThreads, kSystem, 4);
  claims.at_least({"one-cpu-documents", "there, the time of a single document grows in proportion to the threads",
                   fmt::format("{} ms a document with one thread, {} with 4", figure_text(one), figure_text(four)),
                   "computing; all workers are kept on one CPU"},
                  quotient(four, one), 3);
}

// The article's pool of processes, on documents of which there are hundreds in a second.
void pool_of_processes(const scale::Results& results, Claims& claims) {
  const Scaling pooled(results);
  const std::uint32_t n = pooled.most(), most = results.settings.workers.back();
  const auto time = [&](Mode mode, std::uint32_t workers) {
    return pooled.time(Workload::kAllocate, mode, kSystem, workers);
  };
  const auto text = [&](Mode a, Mode b, std::uint32_t workers) {
    return fmt::format("{} ms for {} documents by {}, {} by {}, {} workers", figure_text(time(a, workers)),
                       results.settings.iterations, name_of(a), figure_text(time(b, workers)), name_of(b), workers);
  };
  claims.at_least({"process-each-ruins", "a process for each document would ruin the performance",
                   text(Mode::kSpawn, Mode::kPool, n), "documents of 3 ms: hundreds in a second"},
                  quotient(time(Mode::kSpawn, n), time(Mode::kPool, n)), 1.25);
  claims.at_least({"table-no-bottleneck", "the pool's shared table is no bottleneck for eight parallel tasks",
                   text(Mode::kProcesses, Mode::kPool, most), "against processes that share nothing; documents of 3 ms"},
                  quotient(time(Mode::kProcesses, most), time(Mode::kPool, most)), kLikeProcesses);
}

// The article's machine had two processors of two threads each.
void hyper_threads(const Scaling& scaling, const Machine& machine, Claims& claims) {
  constexpr const char* kStatement = "four threads on two processors with two threads each reach 3 times one";
  const std::uint32_t n = scaling.most();
  if (!machine.cores)
    return claims.not_testable("hyper-threads", kStatement, "the system does not say which CPUs share a core");
  const unsigned cores = *machine.cores;
  if (n <= cores)
    return claims.not_testable("hyper-threads", kStatement,
                               fmt::format("{} CPUs on {} cores, and {} workers", machine.cpus, cores, n));
  const Sets speed = scaling.speed(Workload::kCompute, Mode::kThreads, kSystem, n);
  claims.at_least({"hyper-threads", kStatement, fmt::format("{} threads are {} times as fast as one", n, figure_text(speed)),
                   fmt::format("computing; {} cores; 1.2 times as many count", cores), 2},
                  speed, 1.2 * cores);
}

// The article's diagrams, in per cent of one worker's speed. Of their values its text gives some.
void diagrams(const std::vector<std::uint32_t>& workers, const Scaling& all_cpus, const Scaling& one_cpu,
              std::vector<Plot>& plots) {
  const auto line = [&](std::string label, auto speed, std::map<std::uint32_t, double> article) {
    Plot::Line line{std::move(label), {}, {}, {}};
    for (const std::uint32_t n : workers) {
      const auto given = article.find(n);
      line.add(combine({speed(n)}, [](const auto& v) { return 100 * v[0]; }),
               given == article.end() ? std::nullopt : std::optional(given->second));
    }
    return line;
  };
  const auto alone = [&](Workload test, Mode mode) {  // by CPU time, which other programs hardly change
    return [&one_cpu, test, mode](std::uint32_t n) {
      return quotient(one_cpu.cpu(test, mode, kSystem, 1), one_cpu.cpu(test, mode, kSystem, n));
    };
  };
  constexpr Workload kTests[] = {Workload::kCompute, Workload::kAllocate, Workload::kMixed, Workload::kMemory};
  const std::map<std::uint32_t, double> flat{{1, 100}, {2, 100}, {3, 100}, {4, 100}, {6, 100}};
  std::vector<Plot::Line> threads, processes, single;
  for (std::size_t i = 0; i < std::size(kTests); ++i) {
    const Workload test = kTests[i];
    const std::string label = fmt::format("test {}, {}", i + 1, name_of(test));
    const auto speed = [&](Mode mode) {
      return [&all_cpus, test, mode](std::uint32_t n) { return all_cpus.speed(test, mode, kSystem, n); };
    };
    const bool computes = test == Workload::kCompute, allocates = test == Workload::kAllocate;
    using Given = std::map<std::uint32_t, double>;
    threads.push_back(line(label, speed(Mode::kThreads),
                           computes    ? Given{{2, 200}, {4, 300}}
                           : allocates ? Given{{4, 50}}
                                       : Given{}));
    processes.push_back(line(label, speed(Mode::kProcesses), allocates ? Given{{4, 200}} : Given{}));
    single.push_back(line(label, alone(test, Mode::kThreads), computes || test == Workload::kMemory ? flat : Given{}));
  }
  single.push_back(line("test 2, processes", alone(Workload::kAllocate, Mode::kProcesses), flat));
  const auto add = [&](std::string title, std::vector<Plot::Line> lines) {
    plots.push_back({4, std::move(title), "worker", "speed, % of one worker's", workers, std::move(lines)});
  };
  add("Parallel threads, several processors", std::move(threads));
  add("Parallel processes, several processors", std::move(processes));
  add("Parallel threads, a single processor", std::move(single));
}

void table_of_scaling(const Results& results, const Scaling& scaling, Findings& findings) {
  Table table{4, "Milliseconds of the same work by so many workers", {"work, malloc"}, {}};
  for (const char* mode : {"threads", "processes", "pool"})
    for (const std::uint32_t n : results.scaling->settings.workers) table.columns.push_back(fmt::format("{}: {}", mode, n));
  for (const Workload test : results.scaling->settings.tests) {
    for (const char* subject : {"system", "freehold"}) {
      std::vector<std::string> cells{fmt::format("{}, {}", name_of(test), subject)};
      for (const Mode mode : results.scaling->settings.modes) {
        for (const std::uint32_t n : results.scaling->settings.workers)
          cells.push_back(figure_text(scaling.time(test, mode, subject, n)));
      }
      table.rows.push_back(std::move(cells));
    }
  }
  findings.tables.push_back(std::move(table));
}

// The article's table beside this machine's, and its figures. `all`: on all CPUs; `one`: on one.
void table_of_processors(const Machine& machine, const Scaling& all, const Scaling& one, Findings& findings) {
  Table table{5,
              "Nanoseconds for a block on one CPU and on all, and the article's seconds",
              {"test", "1 CPU", fmt::format("{} CPUs", machine.cpus), "single processor", "with hyper-threading",
               "dual processor", "with hyper-threading"},
              {}};
  const bool hyper_threads = machine.cores && *machine.cores < machine.cpus;
  Bars on_one{5, "Table: one CPU; the article's single processor", "ns a block", "s", {}},
      on_all{5,
             fmt::format("Table: {} CPUs; the article's dual processor{}", machine.cpus,
                         hyper_threads ? ", hyper-threading" : ""),
             "ns a block",
             "s",
             {}};
  struct Row {
    const char *text, *kind;
    Workload test;
    const char* name;
    double seconds[4];
  };
  for (const auto& [text, kind, test, name, seconds] :
       {Row{"4 threads in isolation", "standard", Workload::kIsolation, kSystem, {7.948, 6.596, 5.014, 4.797}},
        {"4 threads in isolation", "the article's", Workload::kIsolation, kArticlesAllocator, {1.690, 2.711, 0.837, 1.079}},
        {"producer and consumer", "standard", Workload::kHandover, kSystem, {9.986, 10.853, 9.613, 11.200}},
        {"producer and consumer", "the article's", Workload::kHandover, kArticlesAllocator, {7.848, 8.719, 6.966, 7.804}}}) {
    const std::uint32_t threads = test == Workload::kIsolation ? 4 : 2;
    std::vector<std::string> cells{fmt::format("{}, {}", text, kind), one.nanoseconds(test, name, threads),
                                   all.nanoseconds(test, name, threads)};
    for (const double given : seconds) cells.push_back(fmt::format("{:.3f}", given));
    table.rows.push_back(std::move(cells));
    const auto add = [&](Bars& bars, const Scaling& scaling, double given) {
      if (const auto range = range_of(scaling.each(test, Mode::kThreads, name, threads)))
        bars.bars.push_back({text, kind, range, given});
    };
    add(on_one, one, seconds[0]);
    add(on_all, all, seconds[hyper_threads ? 3 : 2]);
  }
  findings.tables.push_back(std::move(table));
  findings.bars.insert(findings.bars.end(), {std::move(on_one), std::move(on_all)});
}

void table_of_blocks(const Results& results, const Scaling& scaling, Findings& findings) {
  Table table{5, "Nanoseconds for a block over all threads", {"allocator"}, {}};
  const auto& settings = results.blocks->settings;
  for (const Workload test : {Workload::kIsolation, Workload::kHandover})
    for (const std::uint32_t n : workers_of(settings, test))
      table.columns.push_back(fmt::format("{}: {} threads", name_of(test), n));
  for (const Subject& subject : settings.subjects) {
    std::vector<std::string> cells{subject.name};
    for (const Workload test : {Workload::kIsolation, Workload::kHandover})
      for (const std::uint32_t n : workers_of(settings, test)) cells.push_back(scaling.nanoseconds(test, subject.name, n));
    table.rows.push_back(std::move(cells));
  }
  findings.tables.push_back(std::move(table));
}

}  // namespace

void find_scaling(const Results& results, Findings& findings) {
  const Scaling scaling(*results.scaling);
  Claims claims(4, results.machine.cpus, findings.claims);
  const std::string cpus = fmt::format("{} CPUs", results.machine.cpus);
  controls(scaling, claims);
  take_over(*results.scaling, claims, "system-threads-degrade",
            "threads that allocate on the system's malloc do not scale (test 2)",
            cpus + "; relative to computing; threads have arenas of their own today");
  const std::uint32_t n = scaling.most();
  const Sets allocate = scaling.speed(Workload::kAllocate, Mode::kThreads, kSystem, n);
  claims.at_most({"slower-than-one", "they are slower than a single thread even",
                  fmt::format("{} threads are {} times as fast as one", n, figure_text(allocate)), cpus, 2},
                 allocate, 1);
  const Sets four = quotient(scaling.time(Workload::kAllocate, Mode::kThreads, kSystem, 4),
                             scaling.time(Workload::kAllocate, Mode::kThreads, kSystem, 1));
  claims.at_least(
      {"four-take-twice", "four of them take twice the time of one",
       fmt::format("{} times the time of one", figure_text(four)), cpus + "; three quarters of the factor count", 2},
      four, 1.5);
  take_over(*results.scaling, claims, "processes-scale", "processes that do the same scale",
            cpus + "; relative to computing");
  take_over(*results.scaling, claims, "pool-scales", "so does a pool of worker processes that is called like a function",
            "tasks of about a millisecond; relative to computing");
  take_over(*results.scaling, claims, "pool-unlocks",
            "the pool makes a component that does not scale 1.5 to 2 times as fast as threads do",
            "the component is lists behind one lock, as the libraries' were then");
  take_over(*results.scaling, claims, "freehold-threads-scale",
            "another memory manager does without the processes, where allocating is what does not scale",
            "Freehold's malloc, relative to processes");
  hyper_threads(scaling, results.machine, claims);
  beyond_the_cpus(scaling, results.machine.cpus, claims);
  remedy(scaling, claims, Workload::kObject, "object-heap",
         "a heap for each object, which ends with it, is much faster than the common one",
         "one thread; OwnerLockedHeap, which frees no node");
  remedy(scaling, claims, Workload::kScoped, "untouched-object",
         "a question of ours: with its containers untouched, the heap by scope, is an object's heap faster, too?",
         "one thread; a HeapScope of a PrivateHeap, which frees no node; Freehold's malloc", "freehold");
  remedy(scaling, claims, Workload::kReserved, "reserved-heap",
         "memory that was allocated before, is used again, and is freed at once, is much faster, too",
         "one thread; OwnerLockedHeap::reserve and release_all");
  remedy(scaling, claims, Workload::kWorkerHeap, "worker-heap", "so is a heap for each thread",
         "one thread; OwnerLockedHeap, which frees each node");
  one_processor(Scaling(*results.one_cpu), results.one_cpu->settings.workers.back(), scaling, claims);
  pool_of_processes(*results.pooled, claims);
  diagrams(results.scaling->settings.workers, scaling, Scaling(*results.one_cpu), findings.plots);
  table_of_scaling(results, scaling, findings);
}

void find_thread_local(const Results& results, Findings& findings) {
  const Scaling scaling(*results.blocks);
  Claims claims(5, results.machine.cpus, findings.claims);
  const std::uint32_t n = scaling.most();
  const auto isolation = [&](std::string_view name, std::uint32_t workers) {
    return scaling.time(Workload::kIsolation, Mode::kThreads, name, workers);
  };
  const auto handover = [&](std::string_view name) { return scaling.time(Workload::kHandover, Mode::kThreads, name, 2); };
  const auto text = [&](Workload test, const char* a, const char* b, std::uint32_t workers) {
    return fmt::format("{} ns a block, {} {}", scaling.nanoseconds(test, a, workers), b,
                       scaling.nanoseconds(test, b, workers));
  };
  constexpr const char* kArticle = kArticlesAllocator;
  claims.at_least({"isolation-faster", "four threads in isolation: 2 to 6 times as fast as the standard allocator (test 1)",
                   "system " + text(Workload::kIsolation, "system", kArticle, 4),
                   "the article's policy to the letter, blocks of 16 to 128 bytes"},
                  quotient(isolation("system", 4), isolation(kArticle, 4)), 2);
  claims.at_least({"handover-faster", "producer and consumer: 1.2 to 1.4 times as fast (test 2)",
                   "system " + text(Workload::kHandover, "system", kArticle, 2), "one pair of threads", 2},
                  quotient(handover("system"), handover(kArticle)), 1.15);
  const Scaling one_cpu(*results.blocks_one_cpu);
  const auto on_one_cpu = [&](std::string id, std::string statement, Workload test, std::uint32_t threads, double wanted) {
    const auto time = [&](const char* name) { return one_cpu.time(test, Mode::kThreads, name, threads); };
    claims.at_least({std::move(id), std::move(statement),
                     fmt::format("system {} ns a block, owner-article {}", one_cpu.nanoseconds(test, "system", threads),
                                 one_cpu.nanoseconds(test, kArticle, threads)),
                     "all threads are kept on one CPU"},
                    quotient(time("system"), time(kArticle)), wanted);
  };
  on_one_cpu("one-cpu-isolation", "2 to 3 times as fast at a single processor", Workload::kIsolation, 4, 2);
  on_one_cpu("one-cpu-handover", "which for producer and consumer is 1.2 to 1.3 times in the article's table",
             Workload::kHandover, 2, 1.15);
  claims.at_least({"hundred-times", "almost 100 times as fast on two processors",
                   "system " + text(Workload::kIsolation, "system", kArticle, 4), "the article's own table says 4 to 6", 2},
                  quotient(isolation("system", 4), isolation(kArticle, 4)), 50);
  const Sets own = scaling.speed(Workload::kIsolation, Mode::kThreads, kArticle, n);
  const Sets compute = scaling.speed(Workload::kCompute, Mode::kThreads, kSystem, n);
  claims.at_least(
      {"processors-speed-up", "in isolation, more processors make it faster only",
       fmt::format("{} threads are {} times as fast as one, computing {}", n, figure_text(own), figure_text(compute)),
       "relative to computing", 2},
      quotient(own, compute), kScales);
  const Sets standard = scaling.speed(Workload::kIsolation, Mode::kThreads, kSystem, n);
  claims.at_most({"standard-collapses", "the standard allocator becomes slower with more processors",
                  fmt::format("{} threads are {} times as fast as one", n, figure_text(standard)),
                  "glibc's threads have caches and arenas of their own today", 2},
                 standard, 1);
  claims.at_least({"batches", "a question of ours: does it pay to gather a hundred slots before they are handed over?",
                   "to the letter " + text(Workload::kHandover, kArticle, "owner-mutex", 2), "one pair of threads", 2},
                  quotient(handover(kArticle), handover("owner-mutex")), 1.05);
  claims.not_testable("absolute-times-5", "seconds on a Pentium 4 and a Xeon of 3 GHz", "processors of 2006");
  table_of_processors(results.machine, scaling, one_cpu, findings);
  table_of_blocks(results, scaling, findings);
}

}  // namespace freehold::lab::articles
