; SPDX-License-Identifier: MIT
; Input of the "z3" row: 1048573 is prime, by bit-blasting a multiplication.
(set-logic QF_BV)
(declare-const a (_ BitVec 24))
(declare-const b (_ BitVec 24))
(assert (= (bvmul a b) #x0ffffd))
(assert (bvult #x000001 a))
(assert (bvult a #x001000))
(assert (bvult #x000001 b))
(assert (bvult b #x001000))
(check-sat)
