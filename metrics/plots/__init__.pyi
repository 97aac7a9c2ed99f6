from .display import UtilityDisplay as UtilityDisplay
