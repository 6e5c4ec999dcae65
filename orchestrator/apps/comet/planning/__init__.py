"""Plans for detecting complex events (Comet, sections III and IV, and what goes beyond them). Pure functions.

``problem`` holds what is given (``links`` too); ``ced_tree`` makes the tree, ``estimator`` says what a plan
costs and how late it is, ``planners`` lists the ways to plan, ``together`` plans several patterns,
``printing`` shows a plan.
"""
