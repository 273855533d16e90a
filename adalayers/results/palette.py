"""Colours of arms and series (Okabe and Ito's, then Tol's), told apart by most eyes: pages and MLflow alike."""

COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#661100", "#999933"),
    *("#332288", "#AA4499", "#44AA99", "#882255", "#117733", "#777777", "#CC6677", "#000000"),
)
