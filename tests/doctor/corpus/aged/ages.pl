# SPDX-License-Identifier: MIT
# A load that leaves holes, and work beside it, in Perl: perl ages.pl load|work|both
use strict;
use warnings;
use IO::Handle ();
use POSIX ();

my ($phase, @kept) = $ARGV[0];
srand 1;
if ($phase ne "work") {
    push @kept, "record $_ " . "x" x int rand 200 for 1 .. 200000;
    for my $i (0 .. $#kept) { undef $kept[$i] if rand() < 0.7 }
}
if ($phase ne "load") {
    srand 2;
    my $began = (times)[0] + (times)[1];
    for (1 .. 4) {
        my %words;
        $words{int rand 60000} .= "word " . int(rand 1000) . " " for 1 .. 150000;
        my @sorted = sort { $words{$a} cmp $words{$b} } keys %words;
    }
    printf "seconds %.6f\n", (times)[0] + (times)[1] - $began;
}
STDOUT->flush();
POSIX::_exit(0);
