"""The launcher: ``manage.py up`` and the small supervisor behind it.

Read the files in this order:

1. ``service.py`` says what a service *is* (declared data), ``declarations.py`` lists ours;
2. ``lifecycle.py`` decides what happens to one service next, as a pure state machine;
3. ``supervisor.py`` carries those decisions out with real processes;
4. ``up.py``, ``status.py``, ``stop.py`` and ``doctor.py`` are the commands.

Nothing here imports Django, so commands start quickly and the supervisor uses little memory.
"""
