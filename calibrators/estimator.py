"""What scikit-learn asks of an estimator, without importing scikit-learn.

scikit-learn's own base class costs half a second of import. Its tools need only what is here:
`clone`, cross-validation, searches over parameters and pipelines call `get_params`, `set_params`
and `__sklearn_tags__`, and `check_is_fitted` looks for attributes that end in an underscore.
"""

from inspect import Parameter, signature
from typing import Any, Self


def _parameters(kind: Any) -> dict[str, Any]:
    """Return the constructor's arguments in alphabetical order, with their defaults."""
    arguments = list(signature(kind).parameters.values())
    named = [one for one in arguments if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    return {one.name: one.default for one in sorted(named, key=lambda one: one.name)}


class Estimator:
    """A scikit-learn classifier whose constructor stores its arguments under their names."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name; if `deep`, those of estimators in them, too.

        The arguments of an estimator in the argument `name` are called `name__argument`.
        """
        parameters: dict[str, Any] = {}
        for name in _parameters(type(self)):
            value = getattr(self, name)
            parameters[name] = value
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                inner = value.get_params(deep=True)
                parameters |= {f"{name}__{argument}": entry for argument, entry in inner.items()}
        return parameters

    def set_params(self, **params: Any) -> Self:
        """Set arguments by the names of `get_params`; `ValueError` for a name that is none."""
        inner: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, is_inner, argument = key.partition("__")
            if name not in _parameters(type(self)):
                kind, names = type(self).__name__, ", ".join(_parameters(type(self)))
                raise ValueError(f"{kind} has no argument {name!r}; it has {names}")
            if is_inner:
                inner.setdefault(name, {})[argument] = value
            else:
                setattr(self, name, value)
        for name, arguments in inner.items():
            getattr(self, name).set_params(**arguments)
        return self

    def __repr__(self) -> str:
        """Return the call that makes an equal estimator, without arguments that are the default."""
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name, default in _parameters(type(self)).items()
            if default is Parameter.empty or repr(getattr(self, name)) != repr(default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn (1.6 or later) wants to know of a classifier."""
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
        )


def check_is_fitted(estimator: Any) -> None:
    """Raise scikit-learn's `NotFittedError` if the estimator has learned nothing yet."""
    names = [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]
    if names:
        return
    from sklearn.exceptions import NotFittedError

    name = type(estimator).__name__
    raise NotFittedError(f"this {name} is not fitted yet; call fit(X, y) first")
