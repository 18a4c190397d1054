"""The German nouns of the context corpus: gender, and the form of each case. Written by hand, not from its lexicon."""

from __future__ import annotations

from dataclasses import dataclass

# The same in nominative, accusative and dative singular.
_MASCULINE = """
Absatz Altar Anhänger Anker Anwalt Apfel Apostroph Apotheker Arm Aschenbecher Ast Bach Bagger Ball Bau Baum
Berg Beton Bleistift Bogen Brief Briefkasten Briefträger Bruder Buchhalter Bug Chor Daumen Dieb Eimer Esel
Finger Fingernagel Fisch Fischer Fluss Fuchs Garten Geldbeutel Gletscher Graben Hafen Hammer Helm Herrscher
Honig Hund Hügel Igel Ingenieur Investor Kaiser Kamin Kamm Karren Kassierer Keks Kellner Kiel Klempner Koffer
Kofferraum Kohl Korb Kran Kranich Kredit Kuchen Käse Köcher König Lastwagen Löffel Magen Mann Mast Maulwurf
Mechaniker Metzger Motor Nagel Notar Ofen Oger Otter Palast Pfeil Pflug Pinguin Platz Priester Prozentsatz
Radiergummi Rasen Raucher Reifen Reiher Richter Rock Räuber Rüssel Sack Scheinwerfer Schiedsrichter Schirm
Schlitten Schläger Schrank Schraubenschlüssel Schreibtisch Schwan Seehund Speer Spiegel Spieler Staatsanwalt
Stamm Stier Stift Storch Stoßzahn Strand Stuhl Tabak Teich Teller Thron Tierpfleger Tisch Tischler Torwart
Traktor Tresor Troll Umschlag Vampir Vater Verein Vertrag Vogel Vokal Wagen Wal Wald Wasserfall Wasserhahn
Wolf Wolkenkratzer Wurm Zaun Zopf Zucker
"""
_FEMININE = """
Augenbraue Autobahn Badewanne Bank Birne Bluse Bohrmaschine Briefmarke Brücke Burg Dusche Düne Eiche Eidechse
Ente Eule Fahne Faust Feder Flamme Flasche Fledermaus Flosse Formel Frau Fußnote Gabel Garage Geige Gitarre
Gleichung Glocke Hand Handfläche Haut Hängematte Höhle Kabine Kanone Karotte Katze Kerze Keule Kirche Kiste
Kokosnuss Krone Kuh Kutsche Königin Küche Lagune Lampe Leber Leiter Lippe Locke Lokomotive Lunge Mandel
Maniküre Mannschaft Maschine Matratze Maus Meerjungfrau Nase Niere Nische Nuss Oase Orgel Palme Perücke Pfeife
Postkarte Quelle Ratte Rosine Schlange Schleife Schlucht Schokolade Schraube Schraubenmutter Schublade
Schultasche Schuppe Schwester Silbe Statue Stirn Stoßstange Straße Suppe Tabelle Tante Tasche Tinte Trommel
Trompete Tür Uhr Unterschrift Urkunde Vase Waage Wand Wange Welle Wiese Wohnung Wurst Wurzel Ziege Zielscheibe
Ziffer Zigarette Zigarre
"""
_NEUTER = """
Alphabet Auto Badezimmer Band Bild Blatt Boot Brot Buch Cello Diagramm Dokument Dreieck Eichhörnchen Elfenbein
Fach Fahrrad Fass Feld Feuer Feuerzeug Fleisch Floß Flussbett Gefängnis Gehege Geld Gelände Gericht Gerüst
Geschenk Gesicht Gewicht Haar Handgelenk Heft Holz Kamel Kaninchen Kind Kinn Kissen Kleid Komma Krokodil Lama
Lineal Mammut Meer Mehl Mitglied Moor Moos Muttermal Mädchen Nest Netz Omelett Organ Paket Papier Pferd Pony
Rad Regal Rohr Schaf Schiff Schilf Schließfach Schloss Schwein Schwert Segel Shampoo Siegel Sofa Spiel
Spielfeld Stadion Streichholz Tal Taxi Ufer Wachs Waschbecken Zimmer
"""

# Weak masculines: nominative, and the other cases.
_WEAK = """
Bär Bären; Bogenschütze Bogenschützen; Buchstabe Buchstaben; Chirurg Chirurgen; Drache Drachen; Elefant Elefanten
Höhlenmensch Höhlenmenschen; Konsonant Konsonanten; Ochse Ochsen; Riese Riesen; Zeuge Zeugen
"""
PLURALS = {  # nominative and accusative, dative
    "Männer": "Männern",
    "Kinder": "Kindern",
}

# What "near" is "bei" with: a place, or something so large that it makes one. With all else it is "neben".
_PLACES = """
Altar Bach Badezimmer Baum Berg Burg Eiche Fluss Garage Garten Gefängnis Hafen Höhle Kamin Kirche Küche Lagune
Oase Palast Stadion Strand Teich Tür Wald Wasserfall Wiese Wohnung Wolkenkratzer
"""


@dataclass(frozen=True)
class GermanNoun:
    """A noun in the singular: gender m, f or n, and its forms."""

    gender: str
    nominative: str
    accusative: str
    dative: str

    @property
    def lemma(self) -> str:
        """Article and nominative: "das Ufer"."""
        article = {"m": "der", "f": "die", "n": "das"}[self.gender]
        return f"{article} {self.nominative}"

    @property
    def cases(self) -> dict[str, set[str]]:
        """The cases that each form may stand for."""
        cases_of: dict[str, set[str]] = {}
        for form, case in ((self.nominative, "nom"), (self.accusative, "acc"), (self.dative, "dat")):
            cases_of.setdefault(form, set()).add(case)
        return cases_of


def _read_nouns() -> dict[str, GermanNoun]:
    listed = [
        GermanNoun(gender, noun, noun, noun)
        for gender, text in (("m", _MASCULINE), ("f", _FEMININE), ("n", _NEUTER))
        for noun in text.split()
    ]
    weak = [entry.split() for line in _WEAK.strip().splitlines() for entry in line.split("; ")]
    listed += [GermanNoun("m", nominative, oblique, oblique) for nominative, oblique in weak]
    listed.append(GermanNoun("n", "Herz", "Herz", "Herzen"))
    nouns = {noun.nominative: noun for noun in listed}
    if len(nouns) != len(listed):
        raise ValueError("a noun is listed twice")
    return nouns


NOUNS = _read_nouns()
PLACES = frozenset(_PLACES.split())
