"""Review: the queue of sessions that wait for a person, people's answers, and their effects.

In: flags, the random slice, people's answers. Out: people's grades, which are settled by `rewards.settle`.
Start with `queue` (entering and leaving) and `claims` (order, and who has which), then `answers` (answering and
undoing) and `corrections`, through which every verdict of a person goes.

random_slice, places: sessions that are asked about by chance · calibration, progress: how good judges and people are ·
unheard: sessions of arms whose abstentions nobody has graded
"""
