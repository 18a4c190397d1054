"""The German nouns of the context corpus: gender, and the form of each case. Written by hand, not from its lexicon.

Where two nouns share a spelling, the corpus means: das Band (ribbon), der Bogen (of an archer), der Bug (of a ship),
die Feder (of a machine), die Leiter (ladder), der Mast (of a ship), der Rock (skirt), der See (lake), das Schloss
(of a door), das Tor (goal).
"""

from __future__ import annotations

from dataclasses import dataclass

# The same in nominative, accusative and dative singular.
_MASCULINE = """
Absatz Aktionär Altar Anhänger Anker Anwalt Apfel Apotheker Arbeiter Arm Aschenbecher Ast
Bach Bagger Ball Baum Berg Beton Bleistift Bogen Brief Briefkasten Briefträger Bruder Buchhalter Bug Bus
Chef Chor Computer Daumen Dieb Direktor Eisberg Esel Fahrer Fan Felsen Finger Fingernagel Fisch Fischer Fluss Friseur
Fuchs Garten Geldbeutel Generator Graben Gärtner Hals Hammer Handschuh Herrscher Honig Hund
Igel Ingenieur Investor Jäger Kaiser Kamin Kamm Kapitän Karren Kassierer Keks Kellner Klempner Koffer Kofferraum Kohl
Korb Kran Kranich Krieger Kuchen Käse Köcher König Lastwagen Leim Lippenstift Löffel
Magen Manager Mann Mast Maulwurf Mechaniker Metzger Motor Nagel Ofen
Palast Pfeil Pflug Pinguin Platz Pokal Priester Radiergummi Rasen Rauch Raucher Reifen Richter Rock Räuber Rüssel
Scheinwerfer Schiedsrichter Schirm Schlitten Schläger Schlüssel Schornstein Schrank Schraubenschlüssel Schwan See
Seehund Speer Spiegel Spieler Staatsanwalt Stamm Stau Stier Stift Storch Stoßzahn Strand Stuhl
Tabak Tapir Taschenrechner Teich Teller Tennisschläger Teppich Thron Tierpfleger Tiger Tisch Tischler Trainer Tresor
Troll Umschlag Vampir Vater Verein Vertrag Vogel Vokal Vorstand
Wagen Wal Wald Wasserhahn Wolf Wolkenkratzer Wurm Zopf Zucker
"""
_FEMININE = """
Autobahn Axt Badewanne Bank Birne Blume Bluse Bohrmaschine Briefmarke Brücke Burg Butter
Dusche Eiche Eidechse Ente Erdbeere Eule
Fabrik Fahne Feder Firma Flamme Flasche Fledermaus Flosse Formel Frau Fußnote Gabel Garage Giraffe Gitarre Glocke
Hand Handfläche Haut Höhle Insel Kabine Kanone Karotte Katze Kerze Keule Kirche Kiste Kokosnuss Kreuzung Krone Kuh
Kutsche Königin Küche Lampe Leber Leiter Locke Lunge
Mandel Mannschaft Marmelade Maschine Matratze Maus Meerjungfrau Münze Nase Niere Nische Nuss Oase Orgel
Palme Perücke Pfeife Pflanze Postkarte Quelle Rosine
Schlange Schleife Schokolade Schraube Schraubenmutter Schreibmaschine Schublade Schultasche Schuppe Schwester
Sekretärin Silbe Spalte Statue Stirn Stoßstange Straße Stute Suppe
Tabelle Tante Tasche Tastatur Taste Tinte Trompete Turbine Tür Uhr Unterschrift Vase
Waage Wand Wange Welle Wiese Wohnung Wurst Wurzel Wüste Zahl Ziege Zielscheibe Ziffer Zigarette Zigarre
"""
_NEUTER = """
Akkordeon Alphabet Auto Badezimmer Band Bild Blatt Boot Brett Brot Buch Diagramm Dokument Dreieck
Ei Eichhörnchen Eis Elfenbein Fahrrad Fass Feld Feuer Feuerzeug Fleisch Floß
Gefängnis Gehege Geld Gelände Gemüse Gericht Gerüst Geschenk Gesicht Gewicht Gewächshaus
Haar Handgelenk Heft Holz Kamel Kind Kinn Kissen Klavier Kleid Komma Krokodil Lineal Loch
Mammut Meer Mehl Mitglied Moor Moos Muttermal Mädchen Nest Netz Organ Paket Papier Pferd Pony
Rad Regal Rohr Schaf Schiff Schilf Schließfach Schloss Schwein Schwert Segel Siegel Sofa Spiel Stadion Streichholz
Tal Taxi Tor Ufer Wachs Waschbecken Werk Wort Zimmer
"""
# Weak masculines: nominative, and the other cases.
_WEAK = """
Affe Affen; Buchstabe Buchstaben; Chirurg Chirurgen; Drache Drachen; Elefant Elefanten; Höhlenmensch Höhlenmenschen
Löwe Löwen; Matrose Matrosen; Ochse Ochsen; Pianist Pianisten; Riese Riesen; Schütze Schützen; Student Studenten
Zeuge Zeugen
"""
PLURALS = {  # nominative and accusative, dative
    "Männer": "Männern",
    "Kinder": "Kindern",
}
# What "near" is "bei" with: a place, or something so large that it makes one. With all else it is "neben".
_PLACES = """
Altar Autobahn Bach Badezimmer Baum Berg Burg Eiche Fabrik Felsen Fluss Garage Garten Gefängnis Gewächshaus Höhle
Insel Kamin Kirche Kreuzung Küche Oase Palast Rasen See Stadion Strand Tal Teich Tür Wald Wand Wiese Wohnung
Wolkenkratzer Wüste
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
        found: dict[str, set[str]] = {}
        for form, case in ((self.nominative, "nom"), (self.accusative, "acc"), (self.dative, "dat")):
            found.setdefault(form, set()).add(case)
        return found


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
