"""Extensions defined outside the product, registered from outside, and used by a real `rove run`."""
