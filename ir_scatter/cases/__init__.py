"""Cases (inputs and attributes for one operator): draws them, breaks them, runs them and judges the results.

`doctor` and `fuzz` use them to find defects of runtimes.
"""
