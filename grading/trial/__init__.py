"""`gradingsite try`: the logs of this machine's agents, read where they are, for the person who started it.

In: folders in which harnesses keep logs. Out: ordinary sessions in a site of one process, without a judge or a broker.
Start with `reading` (a thread that imports the logs) and `access` (who may open the pages); `keeping` makes it a normal
site.
"""
