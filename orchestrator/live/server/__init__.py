"""The web server of the live page: it reads run directories, answers browsers, and never delays a run.

Other rooms import ``process.serve`` and ``beside.PageBeside``. The files of the page are in
``orchestrator/live/page``. Every request passes ``guard`` before anything looks at it.
"""
