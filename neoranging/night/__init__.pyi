from .page import NightPage as NightPage
