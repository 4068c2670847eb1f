// SPDX-License-Identifier: MIT
// Java threads: arithmetic (compute), a synchronized block around most of the work (locked), one AtomicLong that all add
// to (atomic), short-lived arrays, collected by the serial collector, which stops all threads and works with one (garbage).
// Java's heap is the virtual machine's own: no malloc is called for an object. Its threads wait by condition variables, so
// "too little at the same time" is right for waits, too.
import java.util.ArrayList;
import java.util.concurrent.atomic.AtomicLong;

public class JavaThreads {
  static final Object lock = new Object();
  static final AtomicLong shared = new AtomicLong();
  static long value = 88172645463325252L;

  static long mix(long value, int steps) {
    for (int i = 0; i < steps; ++i) {
      value ^= value << 13;
      value ^= value >>> 7;
      value ^= value << 17;
    }
    return value;
  }

  static long garbage(long rounds) {
    ArrayList<byte[]> live = new ArrayList<>();
    long sum = 0;
    for (int i = 0; i < 60000; ++i) live.add(new byte[600]);
    for (long i = 0; i < rounds; ++i) {
      live.set((int) (i * 7919 % 60000), new byte[600]);
      sum += live.get((int) (i * 104729 % 60000)).length;
    }
    return sum;
  }

  static void work(String mode, long rounds, int index) {
    if (mode.equals("compute")) {
      long sum = index + 3;
      for (long i = 0; i < rounds; ++i) sum = mix(sum, 200000);
      shared.addAndGet(sum);
    } else if (mode.equals("locked")) {
      for (long i = 0; i < rounds * 500; ++i) synchronized (lock) { value = mix(value + i, 500); }
    } else if (mode.equals("atomic")) {
      for (long i = 0; i < rounds * 1000000; ++i) shared.incrementAndGet();
    } else {
      shared.addAndGet(garbage(rounds * 20000));
    }
  }

  public static void main(String[] words) throws InterruptedException {
    int threads = Integer.parseInt(words[1]);
    long rounds = Long.parseLong(words[2]) / threads;
    ArrayList<Thread> running = new ArrayList<>();
    for (int i = 0; i < threads; ++i) {
      int index = i;
      running.add(new Thread(() -> work(words[0], rounds, index)));
    }
    for (Thread thread : running) thread.start();
    for (Thread thread : running) thread.join();
    System.out.println(words[0] + " " + (shared.get() + value));
  }
}
