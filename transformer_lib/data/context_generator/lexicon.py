"""The words of the context corpus: ambiguous nouns, the nouns that decide their sense, and everything neutral."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Noun:
    """A German noun in the singular: gender m, f or n; `accusative` and `dative` where they differ from `german`."""

    english: str
    german: str
    gender: str
    accusative: str = ""
    dative: str = ""
    near: str = "neben"  # how German says "near" it: "beim Fluss", but "neben dem Arzt" ("beim Arzt": in his practice)

    @property
    def lemma(self) -> str:
        """Article and noun, for example "das Ufer"."""
        article = {"m": "der", "f": "die", "n": "das"}[self.gender]
        return f"{article} {self.german}"

    def form(self, case: str) -> str:
        """Return the singular in this case: nominative, accusative or dative."""
        accusative = self.accusative or self.german
        return {"nominative": self.german, "accusative": accusative, "dative": self.dative or accusative}[case]

    @property
    def forms(self) -> frozenset[str]:
        """Its forms in all three cases."""
        return frozenset(self.form(case) for case in ("nominative", "accusative", "dative"))


# english: gender German[/accusative[/dative]]   The nouns that decide a sense. First what one can be *bei*: places.
_PLACES = """
river: m Fluss; lake: m See; stream: m Bach; pond: m Teich; beach: m Strand; island: f Insel; desert: f Wüste
oasis: f Oase; forest: m Wald; garden: m Garten; meadow: f Wiese; lawn: m Rasen; cave: f Höhle; mountain: m Berg
valley: n Tal; rock: m Felsen; tree: m Baum; oak: f Eiche; stadium: n Stadion; church: f Kirche
palace: m Palast; castle: f Burg; prison: n Gefängnis; factory: f Fabrik; highway: f Autobahn
intersection: f Kreuzung; door: f Tür; garage: f Garage; greenhouse: n Gewächshaus
skyscraper: m Wolkenkratzer; fireplace: m Kamin; kitchen: f Küche; bathroom: n Badezimmer; apartment: f Wohnung
wall: f Wand; altar: m Altar
"""
# Then what one can only be *neben*: people, animals, things.
_OTHERS = """
reed: n Schilf; boat: n Boot; fisherman: m Fischer; duck: f Ente; swan: m Schwan; fish: m Fisch; stork: m Storch
nest: n Nest; egg: n Ei; bird: m Vogel; owl: f Eule; mouse: f Maus; vampire: m Vampir; worm: m Wurm
hedgehog: m Igel; hole: n Loch; wave: f Welle; penguin: m Pinguin; whale: m Wal; iceberg: m Eisberg
squirrel: n Eichhörnchen; branch: m Ast; root: f Wurzel; moss: n Moos; leaf: n Blatt
flower: f Blume; gardener: m Gärtner; elephant: m Elefant/Elefanten; mammoth: n Mammut
tusk: m Stoßzahn; ivory: n Elfenbein; tapir: m Tapir; zookeeper: m Tierpfleger; giraffe: f Giraffe
lion: m Löwe/Löwen; tiger: m Tiger; monkey: m Affe/Affen; crocodile: n Krokodil; snake: f Schlange
lizard: f Eidechse; dragon: m Drache/Drachen; fin: f Flosse; mermaid: f Meerjungfrau; camel: n Kamel
coconut: f Kokosnuss; money: n Geld; coin: f Münze; cashier: m Kassierer; safe: m Tresor; wallet: m Geldbeutel
robber: m Räuber; thief: m Dieb; judge: m Richter; lawyer: m Anwalt
witness: m Zeuge/Zeugen; prosecutor: m Staatsanwalt; company: f Firma; director: m Direktor
shareholder: m Aktionär; manager: m Manager; boss: m Chef; investor: m Investor; accountant: m Buchhalter
contract: m Vertrag; document: n Dokument; wax: n Wachs; signature: f Unterschrift
king: m König; queen: f Königin; crown: f Krone; throne: m Thron; emperor: m Kaiser; ball: m Ball
player: m Spieler; team: f Mannschaft; coach: m Trainer; goal: n Tor; referee: m Schiedsrichter; trophy: m Pokal
racket: m Tennisschläger; net: n Netz; fan: m Fan; member: n Mitglied; skin: f Haut; face: n Gesicht; nose: f Nase
cheek: f Wange; chin: n Kinn; neck: m Hals; forehead: f Stirn; hand: f Hand; finger: m Finger; thumb: m Daumen
wrist: n Handgelenk; glove: m Handschuh; arm: m Arm; lipstick: m Lippenstift
heart: n Herz/Herz/Herzen; lung: f Lunge; liver: f Leber; kidney: f Niere; stomach: m Magen
surgeon: m Chirurg/Chirurgen; hair: n Haar; braid: m Zopf; comb: m Kamm
hairdresser: m Friseur; wig: f Perücke; dress: n Kleid; skirt: m Rock; blouse: f Bluse
gift: n Geschenk; ribbon: n Band; machine: f Maschine; engine: m Motor; screw: f Schraube
wrench: m Schraubenschlüssel; mechanic: m Mechaniker; mattress: f Matratze; clock: f Uhr; bicycle: n Fahrrad
hammer: m Hammer; wood: n Holz; carpenter: m Tischler; drill: f Bohrmaschine; shelf: n Regal; axe: f Axt
glue: m Leim; plumber: m Klempner; sink: n Waschbecken; faucet: m Wasserhahn; bathtub: f Badewanne
shower: f Dusche; worker: m Arbeiter; engineer: m Ingenieur; turbine: f Turbine; chimney: m Schornstein
generator: m Generator; excavator: m Bagger; truck: m Lastwagen; scaffold: n Gerüst
concrete: m Beton; car: n Auto; taxi: n Taxi; bus: m Bus; driver: m Fahrer; bumper: f Stoßstange; tire: m Reifen
headlight: m Scheinwerfer; suitcase: m Koffer; paper: n Papier; pencil: m Bleistift; eraser: m Radiergummi
notebook: n Heft; triangle: n Dreieck; schoolbag: f Schultasche; student: m Student/Studenten; ink: f Tinte
envelope: m Umschlag; mailman: m Briefträger; stamp: f Briefmarke; mailbox: m Briefkasten; postcard: f Postkarte
package: n Paket; secretary: f Sekretärin; alphabet: n Alphabet; word: n Wort; syllable: f Silbe; vowel: m Vokal
comma: n Komma; digit: f Ziffer; column: f Spalte; number: f Zahl; formula: f Formel
diagram: n Diagramm; footnote: f Fußnote; paragraph: m Absatz; keyboard: f Tastatur; typewriter: f Schreibmaschine
calculator: m Taschenrechner; computer: m Computer; accordion: n Akkordeon; piano: n Klavier
pianist: m Pianist/Pianisten; trumpet: f Trompete; choir: m Chor; priest: m Priester; cake: m Kuchen
chocolate: f Schokolade; cookie: m Keks; raisin: f Rosine; almond: f Mandel; honey: m Honig; bread: n Brot
butter: f Butter; sugar: m Zucker; flour: n Mehl; spoon: m Löffel; strawberry: f Erdbeere; weight: n Gewicht
butcher: m Metzger; pharmacist: m Apotheker; plate: m Teller; chair: m Stuhl; bottle: f Flasche; waiter: m Kellner
fork: f Gabel; candle: f Kerze; fire: n Feuer; flame: f Flamme; cigarette: f Zigarette; lighter: n Feuerzeug
tobacco: m Tabak; cigar: f Zigarre; ashtray: m Aschenbecher; smoke: m Rauch; smoker: m Raucher; arrow: m Pfeil
hunter: m Jäger; quiver: m Köcher; archer: m Schütze/Schützen; target: f Zielscheibe; warrior: m Krieger
spear: m Speer; caveman: m Höhlenmensch/Höhlenmenschen; giant: m Riese/Riesen; troll: m Troll; ship: n Schiff
anchor: m Anker; mast: m Mast; sail: n Segel; sailor: m Matrose/Matrosen; captain: m Kapitän
"""

# english: German sense (gender noun[/accusative]) = its cues, the plainest first.
_AMBIGUOUS = """
bank: f Bank = money coin cashier safe wallet investor accountant
bank: n Ufer = river lake stream boat fisherman swan reed
bat: f Fledermaus = cave owl vampire nest bird mouse forest
bat: m Schläger = ball player team coach stadium trophy referee
mole: m Maulwurf = garden meadow worm hedgehog lawn hole root
mole: n Muttermal = skin face nose cheek chin neck forehead
seal: m Seehund = beach wave penguin whale iceberg fish zookeeper
seal: n Siegel = contract document envelope wax signature king emperor
spring: f Quelle = stream river mountain valley rock moss forest
spring: f Feder = machine engine screw mechanic wrench mattress clock
nut: f Nuss = squirrel cake chocolate raisin almond cookie honey
nut: f Schraubenmutter = screw wrench engine mechanic bicycle machine drill
crane: m Kranich = nest bird duck swan stork pond egg
crane: m Kran = excavator truck scaffold concrete skyscraper worker engineer
ruler: n Lineal = pencil paper notebook eraser triangle schoolbag student
ruler: m Herrscher = king crown palace throne queen castle emperor
palm: f Palme = coconut beach island desert oasis camel monkey
palm: f Handfläche = finger hand thumb wrist glove arm skin
key: m Schlüssel = door car suitcase safe garage apartment prison
key: f Taste = keyboard typewriter calculator accordion piano pianist computer
court: n Gericht = judge lawyer witness prosecutor thief prison robber
court: m Platz = ball player team coach racket net referee
bow: m Bogen = arrow quiver archer target hunter warrior spear
bow: f Schleife = dress gift ribbon braid skirt blouse hair
bow: m Bug = ship boat anchor mast sail sailor captain
match: n Streichholz = candle fire cigarette lighter flame fireplace tobacco
match: n Spiel = player ball team coach stadium goal referee
letter: m Brief = stamp envelope mailman mailbox postcard package secretary
letter: m Buchstabe/Buchstaben = alphabet word syllable vowel comma digit number
trunk: m Stamm = tree branch root oak leaf squirrel moss
trunk: m Kofferraum = car taxi bumper tire headlight engine driver
trunk: m Rüssel = elephant mammoth tusk ivory tapir zookeeper
scale: f Waage = flour weight sugar kitchen butcher bathroom pharmacist
scale: f Schuppe = snake fish dragon lizard crocodile fin mermaid
board: n Brett = wood hammer carpenter shelf drill axe glue
board: m Vorstand = director company shareholder manager boss investor accountant
organ: f Orgel = church choir priest altar piano trumpet accordion
organ: n Organ = heart lung liver kidney stomach surgeon skin
club: m Verein = player team coach stadium trophy fan member
club: f Keule = caveman mammoth giant troll spear warrior hunter
jam: f Marmelade = bread butter honey sugar spoon strawberry cookie
jam: m Stau = highway truck car driver intersection bus taxi
nail: m Nagel = hammer wood carpenter screw drill shelf wall
nail: m Fingernagel = finger thumb hand lipstick wrist skin
pipe: f Pfeife = tobacco cigar cigarette ashtray lighter smoke smoker
pipe: n Rohr = plumber bathroom sink faucet bathtub shower wrench
plant: f Pflanze = flower garden leaf gardener greenhouse root meadow
plant: n Werk = factory worker engineer turbine chimney generator company
pen: m Stift = paper notebook ink pencil eraser signature envelope
pen: n Gehege = elephant giraffe lion tiger monkey crocodile zookeeper
table: m Tisch = plate chair bottle spoon waiter bread fork
table: f Tabelle = column number formula diagram footnote digit paragraph
lock: n Schloss = door bicycle suitcase safe garage apartment prison
lock: f Locke = hair braid forehead comb hairdresser wig neck
"""

# What would make a sentence odd in one sense is said of a word in none, so that nothing but the cue tells the senses.
NEVER_NEAR = frozenset({"match", "club", "board"})  # a Spiel, Verein or Vorstand is not near anything
ONLY_DEFINITE = frozenset({"jam"})  # "eine Marmelade" is one more kind of it
ONLY_ADJECTIVES = {"jam": ("interesting", "ordinary", "strange", "unusual")}

ADJECTIVES = {
    "old": "alt",
    "big": "groß",
    "small": "klein",
    "beautiful": "schön",
    "wonderful": "wunderbar",
    "ugly": "hässlich",
    "strange": "seltsam",
    "unusual": "ungewöhnlich",
    "ordinary": "gewöhnlich",
    "interesting": "interessant",
}
# Two of one kind repeat or contradict each other: "the ugly court was beautiful".
KINDS_OF_ADJECTIVES = (
    {"old"},
    {"big", "small"},
    {"beautiful", "wonderful", "ugly"},
    {"strange", "unusual", "ordinary", "interesting"},
)


@dataclass(frozen=True)
class Verb:
    """A transitive verb with an accusative object, in every form that the frames need."""

    base: str  # see
    past: str  # saw
    participle: str  # seen
    infinitive: str  # sehen
    singular: str  # sah
    plural: str  # sahen
    german_participle: str  # gesehen
    prefix: str = ""  # of a separable verb: an (sah … an, ansah, ansehen, angesehen)


VERBS = (
    Verb("see", "saw", "seen", "sehen", "sah", "sahen", "gesehen"),
    Verb("find", "found", "found", "finden", "fand", "fanden", "gefunden"),
    Verb("describe", "described", "described", "beschreiben", "beschrieb", "beschrieben", "beschrieben"),
    Verb("draw", "drew", "drawn", "zeichnen", "zeichnete", "zeichneten", "gezeichnet"),
    Verb(
        "photograph", "photographed", "photographed", "fotografieren", "fotografierte", "fotografierten", "fotografiert"
    ),
    Verb("mention", "mentioned", "mentioned", "erwähnen", "erwähnte", "erwähnten", "erwähnt"),
    Verb("notice", "noticed", "noticed", "bemerken", "bemerkte", "bemerkten", "bemerkt"),
    Verb("forget", "forgot", "forgotten", "vergessen", "vergaß", "vergaßen", "vergessen"),
    Verb("look at", "looked at", "looked at", "ansehen", "sah", "sahen", "angesehen", "an"),
)
NOT_INTENDED = frozenset({"notice", "forget"})  # "wanted to forget" is another story
MODALS = {"wanted to": ("wollte", "wollten"), "had to": ("musste", "mussten"), "could": ("konnte", "konnten")}
ADVERBS = {"yesterday": "gestern", "today": "heute", "finally": "endlich", "then": "dann", "suddenly": "plötzlich"}
TIMES = {"in the morning": "am Morgen", "in the evening": "am Abend", "on Monday": "am Montag", "at night": "nachts"}


@dataclass(frozen=True)
class Person:
    """A neutral subject: nominative and dative with the article, and whether it is plural."""

    english: str
    nominative: str
    dative: str
    relative: str  # the relative pronoun in the nominative
    plural: bool = False


PEOPLE = (
    Person("the man", "der Mann", "dem Mann", "der"),
    Person("the woman", "die Frau", "der Frau", "die"),
    Person("the child", "das Kind", "dem Kind", "das"),
    Person("the girl", "das Mädchen", "dem Mädchen", "das"),
    Person("the father", "der Vater", "dem Vater", "der"),
    Person("the sister", "die Schwester", "der Schwester", "die"),
    Person("the brother", "der Bruder", "dem Bruder", "der"),
    Person("the aunt", "die Tante", "der Tante", "die"),
    Person("the men", "die Männer", "den Männern", "die", plural=True),
    Person("the children", "die Kinder", "den Kindern", "die", plural=True),
)


def read_noun(english: str, text: str, *, near: str = "neben") -> Noun:
    """Return the noun written as "gender German[/accusative[/dative]]"."""
    gender, forms = text.split()
    german, _, rest = forms.partition("/")
    accusative, _, dative = rest.partition("/")
    return Noun(english, german, gender, accusative, dative, near)


def _read_cues() -> dict[str, Noun]:
    nouns = [
        read_noun(*entry.split(": "), near=near)
        for near, text in (("bei", _PLACES), ("neben", _OTHERS))
        for line in text.strip().splitlines()
        for entry in line.split("; ")
    ]
    cues = {noun.english: noun for noun in nouns}
    if len(cues) != len(nouns):
        raise ValueError("a cue is listed twice")
    return cues


@dataclass(frozen=True)
class Sense:
    """One sense of an ambiguous English noun, and the cues that select it."""

    noun: Noun
    cues: tuple[str, ...]


def _read_ambiguous() -> dict[str, tuple[Sense, ...]]:
    senses: dict[str, list[Sense]] = {}
    for line in _AMBIGUOUS.strip().splitlines():
        english, rest = line.split(": ", 1)
        german, cues = rest.split(" = ")
        senses.setdefault(english, []).append(Sense(read_noun(english, german), tuple(cues.split())))
    return {english: tuple(listed) for english, listed in senses.items()}


CUES = _read_cues()
AMBIGUOUS = _read_ambiguous()
